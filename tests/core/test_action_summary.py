"""Summaries of action sets, how they vary, and the point that θ̂ is shrunk towards."""

from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.core.action_summary import diversity
from latecomer.core.jit import kernel
from latecomer.core.state import StateArray
from latecomer.policies.base import bulk
from latecomer.tiers.interpreter import interpret


@kernel
def diversity_of(cell: StateArray) -> float:
    return diversity(cell[0])


def played(policy: Any, sets: Any) -> Any:
    for actions in sets:
        policy.decide(actions)
    return policy


def test_a_summary_is_the_mean_and_the_spread() -> None:
    actions = np.random.default_rng(0).random((6, 5)) / 3
    mean = actions.mean(axis=0)
    expected = [*mean, ((actions - mean) ** 2).sum(axis=1).mean()]
    *summary, count = bulk.summarise(actions).tolist()
    np.testing.assert_allclose(np.array(summary) / 32767, expected, atol=0.5 / 32767)
    assert count == 6


def test_summary_of_one_action_has_no_variance() -> None:
    assert bulk.summarise(np.full((1, 5), 0.3)).tolist()[-2:] == [0, 1]


@pytest.mark.parametrize(("fresh", "low", "high"), [(False, 0.0, 1e-6), (True, 0.8, 1.0)])
def test_diversity_tells_fixed_arms_from_contexts(fresh: bool, low: float, high: float) -> None:
    rng = np.random.default_rng(1)
    sets = rng.random((200, 10, 5)) / 3 if fresh else np.broadcast_to(rng.random((10, 5)) / 3, (200, 10, 5)).copy()
    assert low <= interpret(diversity_of, played(lc.recommended(5, 10, seed=0), sets).state.record) <= high


def test_the_estimate_is_shrunk_towards_the_mean_rate() -> None:
    """θ̂ = G⁻¹(B + λθ_0), with every round closed: G = V."""
    rng = np.random.default_rng(2)
    sets = rng.random((50, 4, 5))
    sets /= np.linalg.norm(sets, axis=2, keepdims=True)
    policy = lc.MaturedLinTS(5, 0, ridge=2.0, prior=0.5, seed=0)
    for t, actions in enumerate(sets, 1):
        policy.decide(actions)
        if t % 3 == 0:
            policy.convert(t)
    mean = sets.mean(axis=(0, 1))
    rate = (16 + 1) / (50 + 2)
    prior = 0.5 * rate * mean / (mean @ mean)
    assert np.linalg.norm(prior) <= 0.5 * rate * np.sqrt(5)
    expected = np.linalg.solve(policy.V, policy.B + 2.0 * prior)
    np.testing.assert_allclose(policy.theta_hat, expected, rtol=1e-4)


def test_without_a_common_direction_the_prior_stays_short() -> None:
    policy = played(lc.MaturedLinTS(5, 0, prior=1.0, seed=0), [np.vstack([np.eye(5), -np.eye(5)])] * 10)
    assert np.isfinite(policy.theta_hat).all()
    assert np.linalg.norm(policy.theta_hat) <= np.sqrt(5)


def test_context_discount_is_a_share() -> None:
    with pytest.raises(lc.errors.InputError, match="context_discount must be"):
        lc.MaturedLinTS(5, 10, context_discount=1.5)
