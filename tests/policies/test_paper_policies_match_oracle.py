"""OTFLinUCB and OTFLinTS, every width and beta, against the slow policy that is written from the definitions."""

from datetime import timedelta

import numpy as np
import pytest
from oracle import Kind, Oracle
from oracle_comparison import compare_with_oracle
from policy_cases import make

import latecomer as lc

POLICY_OF: dict[Kind, str] = {
    "exact": "OTFLinUCB-exact",
    "buffered": "OTFLinUCB-buffered",
    "heuristic": "OTFLinTS-heuristic",
    "conservative": "OTFLinTS-conservative",
    "confidence": "OTFLinTS-confidence",
}


def play_both(
    dim: int,
    span: int,
    kind: Kind,
    *,
    ridge: float,
    rounds: int,
    seed: int,
    in_time: bool = False,
    check_every: int = 1,
) -> dict[lc.Verdict, int]:
    """Play one random trace through the policy and the oracle; returns how often each verdict fell."""
    sampled = "TS" in POLICY_OF[kind]
    policy = make(
        POLICY_OF[kind],
        dim,
        timedelta(microseconds=span) if in_time else span,
        ridge=ridge,
        **({"seed": seed} if sampled else {}),
    )
    oracle = Oracle(dim, span, kind=kind, ridge=ridge)
    normals = np.random.default_rng(seed) if sampled else None
    verdicts = compare_with_oracle(policy, oracle, rounds=rounds, seed=seed, normals=normals, check_every=check_every)
    np.testing.assert_allclose(policy.V, oracle.V, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy.B, oracle.B, rtol=1e-9, atol=1e-9)
    return verdicts


KINDS = pytest.mark.parametrize("kind", POLICY_OF)
SOME = [(1, 1, 1.0), (2, 7, 0.5), (5, 5000, 3.0)]
LARGE: list[tuple[int, int, float, Kind]] = [
    (16, 100, 0.5, "buffered"), (64, 0, 3.0, "exact"), (64, 7, 1.0, "heuristic"), (200, 7, 1.0, "exact"),
    (200, 7, 1.0, "confidence"),
]  # fmt: skip
"""Each dimension, window and ridge at least once; every combination of them, and more rounds, are in the soak."""


@pytest.mark.parametrize(
    ("dim", "span", "ridge", "kind"), [*((*one, kind) for one in SOME for kind in POLICY_OF), *LARGE]
)
def test_same_choices_and_numbers(dim: int, span: int, ridge: float, kind: Kind) -> None:
    check_choices_and_numbers(dim, span, ridge, kind, rounds={64: 50, 200: 25}.get(dim, 70), check_every=8)


@pytest.mark.soak
@pytest.mark.parametrize("ridge", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("span", [0, 1, 7, 100, 5000])
@KINDS
@pytest.mark.parametrize("dim", [1, 2, 5, 16, 64, 200])
def test_same_choices_and_numbers_in_every_combination(dim: int, span: int, ridge: float, kind: Kind) -> None:
    check_choices_and_numbers(dim, span, ridge, kind, rounds={64: 120, 200: 40}.get(dim, 150), check_every=1)


def check_choices_and_numbers(dim: int, span: int, ridge: float, kind: Kind, *, rounds: int, check_every: int) -> None:
    seed = span + int(10 * ridge)
    verdicts = play_both(dim, span, kind, ridge=ridge, rounds=rounds, seed=seed, check_every=check_every)
    assert verdicts[lc.Verdict.ACCEPTED] > 0
    assert verdicts[lc.Verdict.UNKNOWN] > 0
    if span < 10:
        assert verdicts[lc.Verdict.LATE] > 0
    if span >= 7:
        assert verdicts[lc.Verdict.DUPLICATE] > 0


@pytest.mark.parametrize(
    ("span", "kind", "more"), [(200, "buffered", 150), *(pytest.param(5000, kind, 400, marks=pytest.mark.soak)
    for kind in ("exact", "buffered", "heuristic"))]
)  # fmt: skip
def test_a_long_window_that_closes(span: int, kind: Kind, more: int) -> None:
    verdicts = play_both(2, span, kind, ridge=1.0, rounds=span + more, seed=3, check_every=20 if span < 1000 else 100)
    assert verdicts[lc.Verdict.LATE] > 0


@pytest.mark.parametrize("kind", POLICY_OF)
@pytest.mark.parametrize(
    ("span", "rounds"), [(3, 60), (40, 90), *(pytest.param(span, 200, marks=pytest.mark.soak) for span in (0, 3, 40))]
)
def test_policies_with_windows_in_time_match_the_oracle(span: int, rounds: int, kind: Kind) -> None:
    verdicts = play_both(
        2, span, kind, ridge=1.0, rounds=rounds, seed=5, in_time=True, check_every=3 if rounds > 90 else 5
    )
    assert verdicts[lc.Verdict.LATE] > 0
