"""Conversions that are reported in the grace of their decision, against the slow policies from the definitions.

A straggler corrects B and everything that was learnt from its round at the closing; for widths and maturity a round in
its grace is closed.
"""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from extended_oracle import ExtendedOracle
from oracle import Oracle
from oracle_comparison import compare_with_oracle
from policy_cases import make, unit_actions
from recommended_oracle import RecommendedOracle

import latecomer as lc
from latecomer.core.logistic import LONGEST_STEP
from latecomer.policies.recommended import constants

PAPER = {"exact": "OTFLinUCB-exact", "buffered": "OTFLinUCB-buffered", "heuristic": "OTFLinTS-heuristic"}
EXTENDED = {
    "tight": "OTFLinUCB-tight",
    "waiting UCB": "WaitingLinUCB",
    "waiting TS": "WaitingLinTS",
    "matured UCB": "MaturedLinUCB",
    "matured TS": "MaturedLinTS",
}


def play(name: str, oracle: Any, *, rounds: int, seed: int = 3, dim: int = 2, **more: Any) -> Any:
    """Play a random trace in time with a grace through a policy and its oracle; return the policy."""
    seeded = {"seed": seed} if name.endswith(("TS", "heuristic")) else {}
    window, grace = timedelta(microseconds=oracle.span), timedelta(microseconds=oracle.grace)
    policy = make(name, dim, window, grace=grace, **{**seeded, **more})
    normals = np.random.default_rng(seed) if seeded else None
    compare_with_oracle(policy, oracle, rounds=rounds, seed=seed, normals=normals, check_every=3 if rounds > 70 else 8)
    return policy


SPANS = pytest.mark.parametrize(
    ("span", "grace", "rounds"),
    [
        *((span, grace, 70) for span, grace in ((3, 40), (20, 15))),
        *(pytest.param(span, grace, 150, marks=pytest.mark.soak) for span, grace in ((3, 40), (40, 20), (0, 5))),
    ],
)


@SPANS
@pytest.mark.parametrize("kind", PAPER)
def test_the_papers_policies_with_a_grace_match_the_oracle(kind: Any, span: int, grace: int, rounds: int) -> None:
    oracle = Oracle(2, span, kind=kind, grace=grace)
    policy = play(PAPER[kind], oracle, rounds=rounds)
    np.testing.assert_allclose(policy.B, oracle.B, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy.V, oracle.V, rtol=1e-9, atol=1e-9)


@SPANS
@pytest.mark.parametrize("kind", EXTENDED)
def test_other_policies_with_a_grace_match_the_oracle(kind: Any, span: int, grace: int, rounds: int) -> None:
    oracle = ExtendedOracle(2, span, kind=kind, grace=grace)
    policy = play(EXTENDED[kind], oracle, rounds=rounds)
    _, total, worth, _ = oracle.statistics(int(oracle.stamps[-1]))
    np.testing.assert_allclose(policy.B, total, rtol=1e-9, atol=1e-9)
    if kind == "waiting TS":
        assert policy.state.number("closed_value") == pytest.approx(worth)


@pytest.mark.parametrize("rounds", [70, pytest.param(150, marks=pytest.mark.soak)])
def test_recommended_with_a_grace_matches_the_oracle(rounds: int) -> None:
    parameters: dict[str, Any] = {**constants(2)}
    play("MaturedLinTS", RecommendedOracle(2, 20, grace=15, **parameters), rounds=rounds, **parameters)


def test_imputed_sampling_counts_the_delay_of_a_straggler_as_the_whole_window() -> None:
    policy = lc.ImputedLinTS(2, "10s", grace="10s", seed=0)
    for at in (0.0, 1.0, 2.0, 13.0):  # at 13 the first three have closed
        policy.decide(np.eye(2), at=at)
    assert policy.convert(1, 0.5, at=4.0) is lc.Verdict.ACCEPTED
    assert policy.convert(2, 0.5, at=0.5) is lc.Verdict.ACCEPTED  # before its decision: its delay is not known
    np.testing.assert_array_equal(policy.state.array("closed_delays"), [0.0] * 31 + [1.0])
    assert policy.revoke(1, at=14.0) is lc.Verdict.ACCEPTED  # the delay that was seen stays
    np.testing.assert_array_equal(policy.state.array("closed_delays"), [0.0] * 31 + [1.0])
    assert policy.state.number("credited") == 0.5


def test_a_straggler_corrects_the_logistic_quadratic_exactly() -> None:
    """Window 0: a round is quadratic at the β of its closing; a value that comes later adds value·A to η."""
    dim, ridge, seed = 2, 0.3, 11
    policy = lc.LogisticLinTS(dim, "0s", grace="10s", ridge=ridge, exploration=0.7, seed=seed)
    twin, rng = np.random.default_rng(seed), np.random.default_rng(5)
    H, eta, beta = ridge * np.eye(dim + 1), np.zeros(dim + 1), np.zeros(dim + 1)
    features: list[Any] = []
    credits: dict[int, float] = {}
    for t in range(120):
        if features:
            x = features[-1]
            p = 1 / (1 + np.exp(-x @ beta))
            H += p * (1 - p) * np.outer(x, x)
            eta += (p * (1 - p) * (x @ beta) + credits.get(t - 1, 0.0) - p) * x
        step = np.linalg.solve(H, eta - H @ beta)
        beta = beta + step * min(1.0, LONGEST_STEP / max(float(np.linalg.norm(step)), 1e-300))
        sample = beta + 0.7 * np.linalg.solve(np.linalg.cholesky(H).T, twin.standard_normal(dim + 1))
        actions = unit_actions(rng, 5, dim)
        decision = policy.decide(actions, at=float(t))
        scores = actions @ sample[:dim] + sample[dim]
        assert decision.score == pytest.approx(scores.max(), rel=1e-9, abs=1e-9)
        features.append(np.append(decision.action, 1.0))
        for back in (0, int(rng.integers(1, 9))):
            s, value = t - back, float(rng.choice([0.25, 1.0]))
            if s >= 0 and s not in credits and rng.random() < 0.4:
                assert policy.convert(s + 1, value, at=float(s)) is lc.Verdict.ACCEPTED
                credits[s] = value
                eta += value * features[s] * (s < t)
        if t % 10 == 9 and t - 3 in credits:
            assert policy.revoke(t - 2, at=float(t)) is lc.Verdict.ACCEPTED
            eta -= credits[t - 3] * features[t - 3]
            credits[t - 3] = 0.0
    assert sum(value > 0 for value in credits.values()) > 30


@pytest.mark.parametrize("guard", [None, 4.0])
def test_a_straggler_corrects_a_confidence_set_exactly(guard: float | None) -> None:
    """The closed sums are those of a policy that heard of the same values before the closing."""
    common: dict[str, Any] = {"grace": "10s", "guard": guard}
    width: Any = "exact" if guard else "variance"
    early, late = (lc.OTFLinUCB(2, "10s", width=width, **common) for _ in range(2))
    rng = np.random.default_rng(1)
    for at in range(8):
        action = unit_actions(rng, 1, 2)  # one to choose from: what was learnt changes no choice
        for policy in (early, late):
            policy.decide(action, at=float(at))
    reports = [(1, 0.25), (3, 1.0), (4, 0.5)]
    for round, value in reports:
        assert early.convert(round, value, at=8.0) is lc.Verdict.ACCEPTED
    for policy in (early, late):
        policy.decide(unit_actions(np.random.default_rng(2), 1, 2), at=19.0)
    for round, value in reports:
        assert late.convert(round, value, at=8.0) is lc.Verdict.ACCEPTED
    for policy in (early, late):
        assert policy.revoke(4, at=19.0) is lc.Verdict.ACCEPTED
    for name in ("closed_b", "observed_W", "mixture_inv", "mixture_log_det", "closed_H_inv"):
        ours, theirs = (policy.state.array(name) for policy in (early, late))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=name)
    other = lc.OTFLinUCB(2, "10s", width=width, **common)
    assert np.abs(early.state.array("closed_b") - other.state.array("closed_b")).sum() > 0.1
