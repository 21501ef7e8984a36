"""Both policies, every width and beta, against the slow policy that is written from the definitions."""

from datetime import timedelta

import numpy as np
import pytest
from oracle import Kind, Oracle
from traces import make, unit_actions

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
    rng = np.random.default_rng([seed, dim, span])
    normals = np.random.default_rng(seed)
    policy = make(
        POLICY_OF[kind],
        dim,
        timedelta(microseconds=span) if in_time else span,
        ridge=ridge,
        **({"seed": seed} if "TS" in POLICY_OF[kind] else {}),
    )
    oracle = Oracle(dim, span, kind=kind, ridge=ridge)
    theta = unit_actions(rng, 1, dim)[0]
    due: dict[int, list[int]] = {}
    verdicts = dict.fromkeys(lc.Verdict, 0)
    now = 0
    for t in range(1, rounds + 1):
        now = now + int(rng.integers(0, 3)) if in_time else t
        actions = unit_actions(rng, int(rng.integers(1, 7)), dim)
        z = normals.standard_normal(dim) if "TS" in POLICY_OF[kind] else np.empty(0)
        if t % check_every == 0:
            if not in_time:
                assert policy.width == pytest.approx(oracle.width(now), rel=1e-9, abs=1e-9)
                assert policy.pending_width == pytest.approx(oracle.pending_width(now), rel=1e-9, abs=1e-9)
            np.testing.assert_allclose(policy.theta_hat, oracle.theta_hat, rtol=1e-9, atol=1e-9)
        decision = policy.decide(actions, at=now * 1e-6) if in_time else policy.decide(actions)
        index, score = oracle.decide(actions, now, z)
        assert (decision.round, decision.index) == (t, index)
        assert decision.score == pytest.approx(score, rel=1e-9, abs=1e-9)
        np.testing.assert_array_equal(decision.action, actions[index])

        if rng.random() < np.clip(decision.action @ theta, 0, 1):
            due.setdefault(t + int(rng.geometric(1 / (1 + min(span, 20)))) - 1, []).append(t)
        arrivals = due.pop(t, [])
        arrivals += [int(rng.integers(-1, t + 3)) for _ in range(int(rng.integers(0, 3)))]  # late, unknown, repeated
        for round in arrivals:
            value = float(rng.choice([1.0, rng.random()]))
            arrival = now + int(rng.integers(0, 2)) if in_time else now
            at = {"at": arrival * 1e-6} if in_time else {}
            if rng.random() < 0.1:
                assert policy.revoke(round, **at) is oracle.revoke(round, arrival)
            else:
                verdict = policy.convert(round, value, **at)
                assert verdict is oracle.convert(round, value, arrival)
                verdicts[verdict] += 1
    np.testing.assert_allclose(policy.V, oracle.V, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy.B, oracle.B, rtol=1e-9, atol=1e-9)
    still_open = [s for s in range(1, rounds + 1) if oracle.verdict(s, now) is lc.Verdict.ACCEPTED]
    assert policy.pending == len(still_open)
    return verdicts


@pytest.mark.parametrize("kind", POLICY_OF)
@pytest.mark.parametrize("ridge", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("span", [0, 1, 7, 100, 5000])
@pytest.mark.parametrize("dim", [1, 2, 5, 16, 64, 200])
def test_same_choices_and_numbers(dim: int, span: int, ridge: float, kind: Kind) -> None:
    rounds = {64: 120, 200: 40}.get(dim, 150)
    verdicts = play_both(dim, span, kind, ridge=ridge, rounds=rounds, seed=span + int(10 * ridge))
    assert verdicts[lc.Verdict.ACCEPTED] > 0
    assert verdicts[lc.Verdict.UNKNOWN] > 0
    if span < 10:
        assert verdicts[lc.Verdict.LATE] > 0
    if span >= 7:
        assert verdicts[lc.Verdict.DUPLICATE] > 0


@pytest.mark.parametrize("kind", ["exact", "buffered", "heuristic"])
def test_a_window_of_5000_rounds_that_closes(kind: Kind) -> None:
    verdicts = play_both(2, 5000, kind, ridge=1.0, rounds=5400, seed=3, check_every=100)
    assert verdicts[lc.Verdict.LATE] > 0


@pytest.mark.parametrize("kind", POLICY_OF)
@pytest.mark.parametrize("span", [0, 3, 40])
def test_windows_in_time(span: int, kind: Kind) -> None:
    verdicts = play_both(2, span, kind, ridge=1.0, rounds=200, seed=5, in_time=True)
    assert verdicts[lc.Verdict.LATE] > 0
