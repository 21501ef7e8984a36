"""The policies beyond the paper against slow ones that are written from the definitions."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from extended_oracle import ExtendedKind, ExtendedOracle
from oracle_comparison import compare_with_oracle
from policy_cases import make

import latecomer as lc

POLICY_OF: dict[ExtendedKind, str] = {
    "tight": "OTFLinUCB-tight",
    "waiting UCB": "WaitingLinUCB",
    "waiting TS": "WaitingLinTS",
    "matured UCB": "MaturedLinUCB",
    "matured TS": "MaturedLinTS",
}


SHORT = 80
"""The rounds of the default run: a dozen windows of 7; the soak has twice as many."""


def play_both(
    dim: int,
    span: int,
    kind: ExtendedKind,
    *,
    ridge: float,
    rounds: int,
    seed: int,
    in_time: bool = False,
    backdated: float = 0.0,
    **more: Any,
) -> dict[lc.Verdict, int]:
    """Play one random trace through the policy and the oracle; returns how often each verdict fell."""
    name = {**POLICY_OF, "imputed": "ImputedLinTS"}[kind]
    window = timedelta(microseconds=span) if in_time else span
    seeded = {"seed": seed} if name.endswith("TS") else {}
    policy = make(name, dim, window, ridge=ridge, **seeded, **more)
    oracle = ExtendedOracle(dim, span, kind=kind, ridge=ridge, **more)
    twin = np.random.default_rng(seed) if seeded else None
    per_round = dim + 1 if kind == "imputed" else dim
    verdicts = compare_with_oracle(
        policy, oracle, rounds=rounds, seed=seed, normals=twin, normals_a_round=per_round, backdated=backdated,
        check_every=3 if rounds > SHORT else 8,
    )  # fmt: skip
    matrix, total, _, _ = oracle.statistics(int(oracle.stamps[-1]))
    if kind.startswith("waiting"):  # V and B are those of the latest decision
        np.testing.assert_allclose(policy.V, matrix, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(policy.B, total, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(policy.V, oracle.V, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(policy.B, oracle.B, rtol=1e-9, atol=1e-9)
    return verdicts


def everything_happened(verdicts: dict[lc.Verdict, int], span: int) -> bool:
    return (
        verdicts[lc.Verdict.ACCEPTED] > 0
        and verdicts[lc.Verdict.UNKNOWN] > 0
        and (span > 10 or verdicts[lc.Verdict.LATE] > 0)
        and (span < 7 or verdicts[lc.Verdict.DUPLICATE] > 0)
    )


# In five dimensions, those whose algebra is their own; what the others share with the paper's is tried in up to 200.
IN_FIVE = ((5, "matured UCB"), (5, "matured TS"), (5, "tight"))


@pytest.mark.parametrize(
    ("span", "ridge", "rounds"), [(0, 3.0, SHORT), (7, 0.5, SHORT),
    *(pytest.param(span, ridge, 160, marks=pytest.mark.soak) for span in (0, 1, 7, 100) for ridge in (0.5, 3.0))]
)  # fmt: skip
@pytest.mark.parametrize(("dim", "kind"), [*((2, kind) for kind in POLICY_OF), *IN_FIVE])
def test_same_choices_and_numbers(dim: int, span: int, ridge: float, rounds: int, kind: ExtendedKind) -> None:
    verdicts = play_both(dim, span, kind, ridge=ridge, rounds=rounds, seed=span + int(10 * ridge))
    assert everything_happened(verdicts, span)


@pytest.mark.parametrize("kind", POLICY_OF)
@pytest.mark.parametrize(
    ("span", "rounds"), [(40, SHORT), *(pytest.param(span, 140, marks=pytest.mark.soak) for span in (0, 3, 40, 100))]
)
def test_policies_with_windows_in_time_match_the_oracle(span: int, rounds: int, kind: ExtendedKind) -> None:
    """Stamps that repeat and jump: several rounds close, or none, and a conversion may lie ahead of a decision."""
    verdicts = play_both(2, span, kind, ridge=1.0, rounds=rounds, seed=5, in_time=True)
    assert verdicts[lc.Verdict.LATE] > 0


@pytest.mark.parametrize("kind", ["matured UCB", "matured TS"])
@pytest.mark.parametrize(
    ("span", "rounds"), [(3, SHORT), *(pytest.param(span, 140, marks=pytest.mark.soak) for span in (3, 40, 100))]
)
def test_times_before_their_own_decision_are_no_delays(span: int, rounds: int, kind: ExtendedKind) -> None:
    verdicts = play_both(2, span, kind, ridge=1.0, rounds=rounds, seed=6, in_time=True, backdated=0.5)
    assert verdicts[lc.Verdict.ACCEPTED] > 50 * rounds / 140


@pytest.mark.parametrize(
    ("span", "kind", "rounds"),
    [
        (4_000, "matured TS", SHORT),
        (10**9, "matured UCB", SHORT),
        *(
            pytest.param(span, kind, 160, marks=pytest.mark.soak)
            for span in (4_000, 10**6, 10**9)
            for kind in ("matured UCB", "matured TS")
        ),
    ],
)
def test_windows_far_longer_than_the_trace(span: int, kind: ExtendedKind, rounds: int) -> None:
    """Bins of one round, of 30, and of more than all: some, few and none are ever covered.

    No bin ends at a multiple of 32, where uniform delays would meet a level (l + ½)/16 exactly, and rounding decide.
    """
    verdicts = play_both(2, span, kind, ridge=1.0, rounds=rounds, seed=7)
    assert verdicts[lc.Verdict.ACCEPTED] > 50 * rounds / 160


@pytest.mark.parametrize("rounds", [50, pytest.param(100, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", POLICY_OF)
def test_policies_with_less_exploration_match_the_oracle(kind: ExtendedKind, rounds: int) -> None:
    play_both(2, 7, kind, ridge=1.0, rounds=rounds, seed=8, exploration=0.3)


@pytest.mark.parametrize("rounds", [60, pytest.param(150, marks=pytest.mark.soak)])
def test_matured_sampling_with_optimism_matches_the_oracle(rounds: int) -> None:
    play_both(5, 7, "matured TS", ridge=1.0, rounds=rounds, seed=9, optimism=1.5)


@pytest.mark.parametrize("rounds", [SHORT, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("dim", [2, 5])
def test_nothing_to_impute_is_sampling_with_a_plug_in_variance(dim: int, rounds: int) -> None:
    play_both(dim, 0, "imputed", ridge=0.5, rounds=rounds, seed=4)


@pytest.mark.parametrize(("first", "second"), [(70, 140), pytest.param(150, 200, marks=pytest.mark.soak)])
def test_a_ring_that_grows_and_shrinks_loses_no_pointer(first: int, second: int) -> None:
    """Bursts in time: more than a block of rounds at one stamp, or two, then gaps in which all of them close."""
    policy, oracle = lc.MaturedLinUCB(2, timedelta(microseconds=20)), ExtendedOracle(2, 20, kind="matured UCB")
    now, rng = 0, np.random.default_rng(0)
    for count, gap in ((first, 3), (1, 30), (5, 4), (second, 2), (3, 25), (10, 1)):
        for _ in range(count):
            actions = rng.random((3, 2)) / 2
            decision = policy.decide(actions, at=now * 1e-6)
            assert decision.index == oracle.decide(actions, now, np.empty(0))[0]
            if rng.random() < 0.3:
                at = now + int(rng.integers(0, gap))
                round = max(1, decision.round - int(rng.integers(0, 20)))
                assert policy.convert(round, at=at * 1e-6) is oracle.convert(round, 1.0, at)
        now += gap
        np.testing.assert_allclose(policy.theta_hat, oracle.estimate(int(oracle.stamps[-1])), rtol=1e-9, atol=1e-12)
