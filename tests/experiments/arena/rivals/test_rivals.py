"""The rivals: each against its definition, summed afresh, and in a small simulation."""

from math import log, sqrt
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.experiments.arena.rivals import bootstrapped_ts, glm_ucb, weighted_logistic
from latecomer.experiments.arena.rivals.bootstrapped_ts import BootstrappedTS
from latecomer.experiments.arena.rivals.discounted import DiscountedLinTS, DiscountedLinUCB
from latecomer.experiments.arena.rivals.glm_ucb import DelayedGLMUCB
from latecomer.experiments.arena.rivals.history import History, next_fit
from latecomer.experiments.arena.rivals.table import RIVALS
from latecomer.experiments.arena.rivals.weighted_logistic import FakeNegativeWeightedTS, FeedbackShiftWeightedTS

WORLD = lc.World(theta=[0.3, 0.6], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=5))


def play(rule: Any, *, rounds: int, seed: int = 0, window: int = 10, rate: float = 0.4) -> list[tuple[int, int]]:
    """Play random sets, and let conversions arrive, some too late; return (round, delay) of those in the window."""
    due: dict[int, list[int]] = {}
    rng, seen = np.random.default_rng(seed), []
    for t in range(1, rounds + 1):
        rule.decide(rng.random((3, 2)) / 2)
        if rng.random() < rate:
            due.setdefault(t + int(rng.integers(0, window + 4)), []).append(t)
        for s in due.pop(t, []):
            rule.convert(s)
            if t - s <= window:
                seen.append((s, t - s))
    return seen


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_plays_and_repeats_itself(name: str) -> None:
    rival = RIVALS[name](2, 10)
    one, two = (lc.simulate(WORLD, {name: rival}, horizon=150, runs=2, seed=3, progress=False) for _ in range(2))
    np.testing.assert_array_equal(one.regret(name), two.regret(name))
    assert 0.0 < one.final(name).mean() < 60.0


def test_history_has_the_delays_within_the_window() -> None:
    history = History(2, 3)
    for t in range(1, 201):
        history.append(np.array([t, 0.0]))
        if t % 5 == 4:
            assert history.convert(t - 3)
            assert not history.convert(t - 3)  # once
            assert not history.convert(max(1, t - 4))  # too late
    assert history.delays[:6].tolist() == [3, -1, -1, -1, -1, 3]
    assert history.ages[-5:].tolist() == [3, 3, 2, 1, 0]
    assert (history.closed, history.actions[150, 0]) == (197, 151.0)
    assert next_fit(0) == 1


def test_bootstrapped_models_are_weighted_ridge_estimates_of_expected_conversions() -> None:
    """One sweep of one model, from the definitions, round by round."""
    rule = BootstrappedTS(2, 10, replicates=3).fresh(5)
    play(rule, rounds=40)
    rule.fit()
    theta, hazard, history, j = rule.thetas[1].copy(), float(rule.hazards[1]), rule.history, 1
    gram, total, seen, waited = np.eye(2), rule.centres[j].copy(), 1.0, 10.0
    survive = [(1 - hazard) ** k for k in range(11)]
    for s in range(1, 41):
        action, delay, weight = history.actions[s - 1], int(history.delays[s - 1]), rule.weights[s - 1, j]
        age = min(10, 40 - s)
        p, F = min(max(float(action @ theta), 1e-4), 1 - 1e-4), (1 - survive[age]) / (1 - survive[10])
        z = 1.0 if delay >= 0 else p * (1 - F) / (1 - p * F) if s > 30 else 0.0
        gram += weight * np.outer(action, action)
        total += weight * z * action
        seen += weight * (delay >= 0)
        waited += weight * (max(delay, 1) if delay >= 0 else z * age)
    rule.sweep(j)
    np.testing.assert_allclose(rule.thetas[j], np.linalg.solve(gram, total), rtol=1e-9)
    np.testing.assert_allclose(rule.hazards[j], seen / waited, rtol=1e-9)


def test_em_finds_the_rate_and_the_delay_of_a_world_without_features() -> None:
    """d = 1: rate 0.3 and mean delay 20, though a window of 60 has not closed for a third of the rounds."""
    world = lc.World(theta=[0.3], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=20))
    template, found = BootstrappedTS(1, 60), []

    class Spy:
        def fresh(self, seed: int) -> Any:
            found.append(template.fresh(seed))
            return found[-1]

    lc.simulate(world, {"spy": Spy()}, horizon=2000, runs=1, seed=0, progress=False)
    rule = found[-1]
    for _ in range(20):
        rule.fit()
    assert rule.thetas.mean() == pytest.approx(0.3 * world.delays.cdf(60), abs=0.03)
    assert 1.0 / rule.hazards.mean() == pytest.approx(20, abs=5)
    assert np.std(rule.thetas) == pytest.approx(sqrt(0.3 * 0.7 / 2000), rel=0.7)  # the bootstrap's spread


def test_expected_conversions_of_a_round_are_bayes_rule() -> None:
    expected = bootstrapped_ts.expect_conversions(
        np.array([0.2, 0.2, 0.2, 0.2]), np.array([0.0, 0.5, 1.0, 0.5]), np.array([False, False, False, True])
    )
    np.testing.assert_allclose(expected, [0.2, 0.1 / 0.9, 0.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize("counts_pending", [True, False])
def test_glm_ucb_has_the_estimate_and_the_radius_of_its_definition(counts_pending: bool) -> None:
    rule = DelayedGLMUCB(2, 10, counts_pending=counts_pending).fresh(0)
    play(rule, rounds=80)
    rule._due = 0
    rule.decide(np.eye(2) / 2)  # fits, and brings V up to date
    x, closed = rule.history.actions[:80], 70
    y = rule.history.converted[:80].astype(float)
    for _ in range(10):
        rule.beta = glm_ucb.fit_logistic(x[:closed], y[:closed], rule.beta, ridge=0.1)
    slope = x[:closed].T @ (y[:closed] - 1 / (1 + np.exp(-x[:closed] @ rule.beta)))
    np.testing.assert_allclose(slope, 0.1 * rule.beta, atol=1e-9)
    counted = closed if counts_pending else 80
    np.testing.assert_allclose(np.linalg.inv(rule.V_inv), np.eye(3) + x[:counted].T @ x[:counted], rtol=1e-9)
    expected = 2 * sqrt(1.5 * log(1 + 2 * 82 / 3) + log(10)) + (sqrt(10) if counts_pending else 0)
    assert rule.radius() == pytest.approx(expected, rel=1e-12)


def test_weights_of_fake_negatives_make_the_gradient_unbiased() -> None:
    """Of what is fed in, 1/(1 + q) is negative: with p = q the expected gradient is 0, by hand and in a run."""
    q = 0.3
    negative, positive = (1 - q) * (1 + q) * q, (1 + q) * (1 - q)
    assert positive * q / (1 + q) - negative / (1 + q) == pytest.approx(0.0, abs=1e-15)
    rule = FakeNegativeWeightedTS(2, 10).fresh(0)
    action = np.array([[0.6, 0.3]])
    rule.decide(action)
    x = np.array([0.6, 0.3, 1.0]) * sqrt(0.5)
    information = np.eye(3) + 0.25 * np.outer(x, x)  # at β = 0, p = ½
    after = np.linalg.solve(information, -0.5 * 1.5 * 0.5 * x)
    np.testing.assert_allclose(rule.beta, after, rtol=1e-12)
    rule.convert(1)
    p = 1 / (1 + np.exp(-x @ after))
    np.testing.assert_allclose(rule.beta, after + np.linalg.solve(information, (1 + p) * (1 - p) * x), rtol=1e-12)


def test_feedback_shift_weights_and_estimate_are_those_of_the_definition() -> None:
    weights = weighted_logistic.shift_weights(
        np.array([0.2, 0.2, 0.2]), np.array([0.5, 0.5, 0.01]), np.array([1.0, 0.0, 1.0])
    )
    np.testing.assert_allclose(weights, [2.0, 0.8 / 0.9, 10.0], rtol=1e-12)  # the last is cut
    matured = weighted_logistic.estimate_maturity(np.array([0, 3, -1, 3]), np.array([0, 2, 3]), 3)
    np.testing.assert_allclose(matured, [(1 + 4 / 4) / 7, (1 + 4 * 3 / 4) / 7, 1.0], rtol=1e-12)
    rule = FeedbackShiftWeightedTS(2, 10).fresh(0)
    play(rule, rounds=60)
    for _ in range(40):  # weights follow the model, and settle with it
        rule.fit()
    x, y = rule.history.actions, rule.history.converted.astype(float)
    chances = 1 / (1 + np.exp(-x @ rule.beta))
    closed = [d for d in rule.history.delays[:50].tolist() if d >= 0]
    F = np.array([(sum(d <= g for d in closed) + 4 * (g + 1) / 11) / (len(closed) + 4) for g in rule.history.ages])
    w = np.where(y > 0, 1 / np.maximum(F, 0.1), (1 - chances) / (1 - chances * F))
    np.testing.assert_allclose(x.T @ (w * (y - chances)), 0.1 * rule.beta, atol=1e-6)
    np.testing.assert_allclose(rule.information, 0.1 * np.eye(3) + (x.T * (w * chances * (1 - chances))) @ x, rtol=1e-6)


@pytest.mark.parametrize("template", [DiscountedLinUCB(2, 10, 0.95), DiscountedLinTS(2, 10, 0.95)])
def test_discounted_sums_weigh_a_round_by_its_age(template: Any) -> None:
    rule = template.fresh(1)
    seen = dict(play(rule, rounds=60))
    actions, gamma = rule.history.actions, 0.95
    ages = 60 - np.arange(1, 61)
    weights = gamma**ages
    np.testing.assert_allclose(rule.V, np.eye(2) + (actions.T * weights) @ actions, rtol=1e-9)
    np.testing.assert_allclose(rule.V_squared, np.eye(2) + (actions.T * weights**2) @ actions, rtol=1e-9)
    total = sum(gamma ** (60 - s) * actions[s - 1] for s in seen)
    np.testing.assert_allclose(rule.b, total, rtol=1e-9)
    assert rule.weight == pytest.approx(weights.sum(), rel=1e-12)
    if isinstance(template, DiscountedLinUCB):
        grown = (1 - gamma**120) / (2 * (1 - gamma**2))
        assert rule.radius() == pytest.approx(1 + 0.5 * sqrt(2 * log(10) + 2 * log(1 + grown)), rel=1e-12)
