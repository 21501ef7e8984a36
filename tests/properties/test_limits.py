"""Limits in which an algorithm becomes another one, or can be worked out by hand."""

from typing import Any

import numpy as np
import pytest
from policy_cases import unit_actions

import latecomer as lc


def f(t: int, dim: int, ridge: float, delta: float) -> float:
    return float(np.sqrt(ridge) + np.sqrt(2 * np.log(1 / delta) + dim * np.log((dim * ridge + t) / (dim * ridge))))


def test_no_delay_and_no_window_is_lin_ucb_with_twice_the_radius() -> None:
    rng = np.random.default_rng(0)
    on_the_fly = lc.OTFLinUCB(5, 0)
    plain = lc.LinUCB(5, 0, exploration=2.0)
    for t in range(1, 300):
        assert on_the_fly.width == pytest.approx(2 * f(t, 5, 1.0, 0.1), rel=1e-14)
        assert on_the_fly.pending_width == 0.0
        actions = unit_actions(rng, 6, 5)
        first, second = on_the_fly.decide(actions), plain.decide(actions)
        assert first.index == second.index
        assert first.score == pytest.approx(second.score, rel=1e-12)
        if rng.random() < 0.5:
            assert on_the_fly.convert(first) is plain.convert(second) is lc.Verdict.ACCEPTED


def test_a_window_longer_than_the_past_censors_nothing() -> None:
    policy = lc.OTFLinUCB(2, 1000)
    rng = np.random.default_rng(1)
    decisions = [policy.decide(unit_actions(rng, 3, 2)) for _ in range(1000)]
    assert {policy.convert(decision) for decision in decisions} == {lc.Verdict.ACCEPTED}
    np.testing.assert_allclose(policy.B, np.sum([decision.action for decision in decisions], axis=0), rtol=1e-12)


def test_no_conversion_in_the_window_means_no_B() -> None:
    policy = lc.OTFLinTS(5, 2, seed=0)
    rng = np.random.default_rng(2)
    for t in range(1, 100):
        policy.decide(unit_actions(rng, 3, 5))
        assert policy.convert(t - 3) is (lc.Verdict.LATE if t > 3 else lc.Verdict.UNKNOWN)
    np.testing.assert_array_equal(policy.B, np.zeros(5))
    np.testing.assert_array_equal(policy.theta_hat, np.zeros(5))


@pytest.mark.parametrize("ridge", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("window", [0, 1, 10])
def test_ridge_in_one_dimension_equals_the_formula_by_hand(window: int, ridge: float) -> None:
    """Every action 1: θ̂ = conversions/(λ + n), and W = min(m, n)/√(λ + n)."""
    policy = lc.OTFLinUCB(1, window, ridge=ridge)
    conversions = 0
    for n in range(1, 60):
        decision = policy.decide([[1.0]])
        if n % 3 == 0:
            policy.convert(decision)
            conversions += 1
        assert policy.theta_hat[0] == pytest.approx(conversions / (ridge + n), rel=1e-12)
        assert policy.pending_width == pytest.approx(min(window, n) / np.sqrt(ridge + n), rel=1e-12)


def test_basis_arms_by_hand() -> None:
    """Actions e_i: the index is S_i/(λ + N_i) + α/√(λ + N_i), with α = 2f + Σ_{window} 1/√(λ + N_{A_s})."""
    dim, window, ridge, delta = 5, 6, 2.0, 0.2
    policy = lc.OTFLinUCB(dim, window, ridge=ridge, delta=delta)
    rng = np.random.default_rng(3)
    plays, credits = np.zeros(dim), np.zeros(dim)
    history: list[int] = []
    for t in range(1, 200):
        alpha = 2 * f(t, dim, ridge, delta) + sum(1 / np.sqrt(ridge + plays[arm]) for arm in history[-window:])
        index = credits / (ridge + plays) + alpha / np.sqrt(ridge + plays)
        assert policy.width == pytest.approx(alpha, rel=1e-12)
        decision = policy.decide(np.eye(dim))
        assert decision.index == int(np.flatnonzero(index > index.max() - 1e-9)[0])
        assert decision.score == pytest.approx(index.max(), rel=1e-12)
        plays[decision.index] += 1
        history.append(decision.index)
        if rng.random() < 0.3:
            policy.convert(decision)
            credits[decision.index] += 1


@pytest.mark.parametrize("width", ["exact", "buffered"])
def test_ties_go_to_the_lowest_index(width: Any) -> None:
    """In the first round unit vectors tie exactly, whatever rounding makes of their norms."""
    rng = np.random.default_rng(4)
    for dim in (2, 5, 16, 64):
        for _ in range(50):
            assert lc.OTFLinUCB(dim, 5, width=width).decide(unit_actions(rng, 30, dim)).index == 0
