"""A suspected change: older rounds are set aside, and count again where the suspicion fades."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle_comparison import compare_with_oracle
from recommended_oracle import RecommendedOracle, log_evidence
from scipy.stats import multivariate_normal

import latecomer as lc
from latecomer.core.state import UNSTAMPED
from latecomer.policies.recommended import constants

ACTIONS = np.eye(2)
LONG = pytest.param(5, 40, 1_000, 260, 5, marks=pytest.mark.soak)
CASES = [(2, 7, 2_000, 120, 12), (5, 7, 1_000, 260, 5), LONG]


@pytest.mark.parametrize(("dim", "window", "half_life", "rounds", "seed"), CASES)
def test_suspicions_match_the_oracle(dim: int, window: int, half_life: int, rounds: int, seed: int) -> None:
    """The first suspicion fades, and the second lasts; conversions come late, and some are revoked."""
    parameters = {**constants(dim), "false_alarms": 0.003}
    policy = lc.MaturedLinTS(dim, window, half_life=half_life, seed=seed, **parameters)
    oracle = RecommendedOracle(dim, window, half_life=half_life, **parameters)
    compare_with_oracle(
        policy, oracle, rounds=rounds, seed=seed, normals=np.random.default_rng(seed), check_every=20, turn=rounds // 2
    )
    assert oracle.suspicions > 0
    assert dim == 5 or (oracle.reliefs, oracle.lasted) == (1, 1)
    assert policy.state.number("changes") == oracle.changes
    oracle.moment = rounds
    np.testing.assert_allclose(policy.V, oracle.V, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy.B, oracle.B, rtol=1e-9, atol=1e-9)


def test_the_evidence_of_the_oracle_is_a_gaussian_density() -> None:
    """A ratio of densities of B ~ N(Gμ, v(G + GP⁻¹G)), for two laws of θ."""
    rng = np.random.default_rng(0)
    total, v = rng.standard_normal(3), 0.3
    gram, one, other = (factor @ factor.T + np.eye(3) for factor in rng.standard_normal((3, 3, 3)))
    centre = rng.standard_normal(3)

    def log_density(mean: Any, precision: Any) -> float:
        covariance = v * (gram + gram @ np.linalg.solve(precision, gram))
        return float(multivariate_normal.logpdf(total, gram @ mean, covariance))

    expected = log_density(centre, one) - log_density(np.zeros(3), other)
    found = log_evidence(total, gram, centre, one, v) - log_evidence(total, gram, np.zeros(3), other, v)
    assert found == pytest.approx(expected, rel=1e-12)


def play_until_suspicion(policy: Any) -> None:
    """Play an action that converts, until conversions fail and a change is suspected."""
    for t in range(200):
        decision = policy.decide(ACTIONS[:1])
        if t < 100 and t % 2:
            policy.convert(decision)
        if policy.state.number("suspected") != UNSTAMPED:
            return
    pytest.fail("no change was suspected")


def suspicious(**more: Any) -> Any:
    """Make a policy that is never certain of a change."""
    parameters = {**constants(2), "false_alarms": 1e-12, **more}
    policy = lc.MaturedLinTS(2, 40, half_life=10_000, seed=1, **parameters)
    play_until_suspicion(policy)
    return policy


def set_aside(policy: Any) -> Any:
    """Return Σ w_s Y_s A_s of the rounds that are set aside."""
    aside = policy.state.array("bucket_starts") < policy.state.number("suspected")
    return policy.state.array("bucket_B")[aside].sum(axis=0)


def test_a_round_that_is_set_aside_is_credited_and_revoked_in_its_bucket() -> None:
    policy = suspicious()
    first = int(policy.state.number("suspected"))
    before, aside, rate = policy.B.copy(), set_aside(policy), policy.state.number("credited")
    late = first - 1 - first % 2  # an odd round, which has not converted
    assert policy.convert(late) is lc.Verdict.ACCEPTED
    np.testing.assert_allclose(set_aside(policy) - aside, [1.0, 0.0], atol=0.02)
    np.testing.assert_array_equal(policy.B, before)
    assert policy.state.number("credited") == rate
    assert policy.revoke(late) is lc.Verdict.ACCEPTED
    np.testing.assert_allclose(set_aside(policy), aside, atol=1e-12)
    np.testing.assert_array_equal(policy.B, before)
    assert policy.convert(policy.rounds) is lc.Verdict.ACCEPTED
    np.testing.assert_allclose(policy.B - before, [1.0, 0.0], atol=0.02)


def test_v_keeps_the_rounds_that_are_set_aside() -> None:
    policy = suspicious()
    assert policy.V[0, 0] > 0.98 * policy.rounds
    assert policy.B[0] < set_aside(policy)[0]


def test_the_estimate_has_no_prior_while_a_change_is_suspected() -> None:
    policy = suspicious(prior=1.0, shrinkage=64.0)
    assert policy.state.number("ridge_growth") == 1.0
    gram = np.triu(policy.state.array("gram"))
    gram += np.triu(gram, 1).T
    np.testing.assert_allclose(policy.theta_hat, np.linalg.solve(gram, policy.B), rtol=1e-12, atol=1e-15)


def test_a_suspicion_that_fades_leaves_the_sums_of_all_rounds() -> None:
    policy = suspicious()
    assert policy.state.number("changes") == 0
    for _ in range(60):
        decision = policy.decide(ACTIONS[:1])
        policy.convert(decision)
        if policy.state.number("suspected") == UNSTAMPED:
            break
    assert policy.state.number("suspected") == UNSTAMPED
    np.testing.assert_allclose(policy.B, policy.state.array("bucket_B").sum(axis=0), rtol=1e-12)
    assert policy.state.number("changes") == 0


def test_a_policy_that_suspects_a_change_is_saved_as_it_is(tmp_path: Path) -> None:
    policy = suspicious(floor=0.1, draws=8)
    policy.save(tmp_path / "a.policy")
    again = lc.load(tmp_path / "a.policy")
    assert again.state.number("suspected") == policy.state.number("suspected")
    for t in range(60):
        ours, theirs = policy.decide(ACTIONS), again.decide(ACTIONS)
        assert (ours.index, ours.score, ours.propensity) == (theirs.index, theirs.score, theirs.propensity)
        for each in (policy, again):
            each.convert(ours.round - t % 7)
    for name in ("V", "B", "gram", "bucket_B", "bucket_starts", "suspected", "since"):
        np.testing.assert_array_equal(again.state.array(name), policy.state.array(name))


def test_a_state_of_before_there_were_suspicions_suspects_nothing() -> None:
    policy = lc.recommended(2, 40, half_life=1_000, seed=1)
    for _ in range(30):
        policy.convert(policy.decide(ACTIONS))
    arrays = policy.state.arrays()
    again = policy.state.make_empty()
    again.restore({name: array for name, array in arrays.items() if name != "state/suspected"})
    assert again.number("suspected") == UNSTAMPED
    np.testing.assert_array_equal(again.array("bucket_B"), policy.state.array("bucket_B"))
    with pytest.raises(KeyError, match="state/since"):
        again.restore({name: array for name, array in arrays.items() if name != "state/since"})
