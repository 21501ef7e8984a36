"""Delayed logistic regression against plain NumPy: derivatives, one step, the recursion, and maximum likelihood."""

from typing import Any

import numpy as np
import pytest
from policy_cases import unit_actions
from scipy.optimize import minimize

import latecomer as lc
from latecomer.core.logistic import LONGEST_STEP, _add_open_round, update_beta
from latecomer.core.ring import slot_of
from latecomer.tiers.interpreter import view

BETA = np.array([1.5, -2.0, -0.4])  # the last one is the intercept


def mu(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def loss(beta: np.ndarray, x: np.ndarray, y: float, F: float) -> float:
    """−Y ln μ − (1−Y) ln(1 − Fμ)."""
    p = mu(x @ beta)
    return float(-y * np.log(p) - (1 - y) * np.log(1 - F * p))


def gradient(beta: np.ndarray, x: np.ndarray, y: float, F: float) -> np.ndarray:
    """Compute the gradient by central differences."""
    h = 1e-6
    return np.array([(loss(beta + h * e, x, y, F) - loss(beta - h * e, x, y, F)) / (2 * h) for e in np.eye(len(beta))])


def played() -> Any:
    """Nine rounds of a window of 20: round 2 has converted, round 4 was taken back, the others are silent."""
    policy = lc.LogisticLinTS(2, 20, seed=0)
    rng = np.random.default_rng(1)
    for _ in range(9):
        policy.decide(unit_actions(rng, 1, 2))
    for round in (2, 4):
        policy.convert(round)
    policy.revoke(4)
    state = policy.state.record
    state["beta"] = BETA
    state["curve"] = np.append(np.minimum(1, state["edges"][0, :-1] / 21) ** 0.5, 1.0)
    return policy


def round_of(policy: Any, round: int) -> tuple[np.ndarray, float]:
    """The features of a round, the constant one with them, and its maturity: bins of one round each, so no slope."""
    state, ring = policy.state.record, policy.state.ring
    slot = slot_of(view(state)[0], view(ring), round)
    age = policy.rounds - round
    assert state["edges"][0, age] == age
    return np.append(ring["action"][slot // 64, :, slot % 64], 1.0), float(state["curve"][0, age])


@pytest.mark.parametrize(("round", "y"), [(1, 0.0), (5, 0.0), (9, 0.0), (2, 1.0)])
def test_the_gradient_is_that_of_the_loss(round: int, y: float) -> None:
    policy = played()
    state, ring = policy.state.record, policy.state.ring
    state["newton_step"] = 0.0
    x, F = round_of(policy, round)
    _add_open_round(view(state)[0], view(ring), slot_of(view(state)[0], view(ring), round), F)
    np.testing.assert_allclose(state["newton_step"][0], -gradient(BETA, x, y, F), rtol=1e-6, atol=1e-8)


def test_a_conversion_taken_back_is_a_closed_silence() -> None:
    policy = played()
    state, ring = policy.state.record, policy.state.ring
    state["newton_step"] = 0.0
    x, F = round_of(policy, 4)
    _add_open_round(view(state)[0], view(ring), slot_of(view(state)[0], view(ring), 4), F)
    np.testing.assert_allclose(state["newton_step"][0], -gradient(BETA, x, 0.0, 1.0), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("round", [1, 5, 8])
def test_the_information_is_the_mean_curvature(round: int) -> None:
    """Fisher's: the second derivative of the loss, in the mean over Y ~ Bernoulli(Fμ)."""
    policy = played()
    state, ring = policy.state.record, policy.state.ring
    state["gram"] = 0.0
    x, F = round_of(policy, round)
    _add_open_round(view(state)[0], view(ring), slot_of(view(state)[0], view(ring), round), F)
    h, seen = 1e-4, F * mu(x @ BETA)
    hessian = np.zeros((3, 3))
    for y, chance in ((1.0, seen), (0.0, 1 - seen)):
        for j, e in enumerate(np.eye(3)):
            hessian[j] += chance * (gradient(BETA + h * e, x, y, F) - gradient(BETA - h * e, x, y, F)) / (2 * h)
    np.testing.assert_allclose(np.triu(state["gram"][0]), np.triu(hessian), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cut", [False, True])
def test_update_beta_takes_one_step_of_fisher_scoring(cut: bool) -> None:
    policy = played()
    state, ring = policy.state.record, policy.state.ring
    # hardly any prior, and a slope that asks for more than is allowed; or a firm one near BETA
    state["precision"], state["linear"] = (np.eye(3) * 1e-3, 1.0) if cut else (np.eye(3) * 5.0, 5.0 * BETA + 0.5)
    total, information = state["linear"][0] - state["precision"][0] @ BETA, state["precision"][0].copy()
    for round in range(1, 10):
        x, F = round_of(policy, round)
        p = mu(x @ BETA)
        expected = {2: 1.0, 4: 0.0}.get(round, p * (1 - F) / (1 - p * F))
        total += (expected - p) * x
        information += F * p * (1 - p) ** 2 / (1 - F * p) * np.outer(x, x)
    step = np.linalg.solve(information, total)
    assert (np.linalg.norm(step) > LONGEST_STEP) == cut
    step *= min(1.0, LONGEST_STEP / np.linalg.norm(step))
    update_beta(view(state)[0], view(ring))
    np.testing.assert_allclose(state["beta"][0], BETA + step, rtol=1e-10)
    factor = np.triu(state["factor"][0])
    np.testing.assert_allclose(factor.T @ factor, information, rtol=1e-10, atol=1e-12)


def test_everything_closed_follows_the_laplace_recursion() -> None:
    """Window 0: every round is quadratic when the next one is decided, at the β of that moment."""
    dim, ridge, exploration, seed = 2, 0.3, 0.7, 11
    policy = lc.LogisticLinTS(dim, 0, ridge=ridge, exploration=exploration, seed=seed)
    twin, rng = np.random.default_rng(seed), np.random.default_rng(5)
    H, eta, beta = ridge * np.eye(dim + 1), np.zeros(dim + 1), np.zeros(dim + 1)
    last: tuple[np.ndarray, float] | None = None
    for t in range(1, 120):
        if last is not None:
            x, y = last
            p = mu(x @ beta)
            H += p * (1 - p) * np.outer(x, x)
            eta += (p * (1 - p) * (x @ beta) + y - p) * x
        step = np.linalg.solve(H, eta - H @ beta)
        beta = beta + step * min(1.0, LONGEST_STEP / max(float(np.linalg.norm(step)), 1e-300))
        upper = np.linalg.cholesky(H).T
        sample = beta + exploration * np.linalg.solve(upper, twin.standard_normal(dim + 1))
        actions = unit_actions(rng, 5, dim)
        scores = actions @ sample[:dim] + sample[dim]
        decision = policy.decide(actions)
        assert decision.score == pytest.approx(scores.max(), rel=1e-9, abs=1e-9)
        assert scores[decision.index] == pytest.approx(scores.max(), abs=1e-9)
        np.testing.assert_allclose(policy.state.array("beta"), beta, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(policy.theta_hat, beta[:dim], rtol=1e-9, atol=1e-9)
        y = float(rng.random() < mu(decision.action @ BETA[:2] + BETA[2]))
        if y and t % 3:
            policy.convert(decision, 0.5)
            y = 0.5
        elif y:
            policy.convert(decision)
        last = np.append(decision.action, 1.0), y


@pytest.mark.parametrize("rounds", [700, pytest.param(4000, marks=pytest.mark.soak)])
def test_a_long_run_without_delay_comes_near_maximum_likelihood(rounds: int) -> None:
    ridge = 0.1
    policy = lc.LogisticLinTS(2, 0, ridge=ridge, seed=3)
    rng = np.random.default_rng(4)
    X, Y = np.empty((rounds, 3)), np.empty(rounds)
    for t in range(rounds):
        decision = policy.decide(unit_actions(rng, 3, 2))
        X[t] = *decision.action, 1.0
        Y[t] = rng.random() < mu(X[t] @ BETA)
        if Y[t]:
            policy.convert(decision)

    def penalised(beta: np.ndarray) -> float:
        z = X @ beta
        return float(np.sum(np.logaddexp(0, z) - Y * z) + 0.5 * ridge * beta @ beta)

    best = minimize(penalised, np.zeros(3), method="BFGS").x
    p = mu(X @ best)
    deviation = np.sqrt(np.diag(np.linalg.inv((X.T * (p * (1 - p))) @ X)))
    found = policy.state.array("beta")
    assert (np.abs(found - best) < 0.5 * deviation).all()  # what is lost is less than what chance adds
    assert (np.abs(found - BETA) < 4 * deviation).all()


def test_certainty_is_no_accident() -> None:
    """Rounds that all convert at once, hardly any prior: β runs away as far as it may, and no number is lost."""
    policy = lc.LogisticLinTS(2, 50, ridge=1e-9, seed=0)
    for _ in range(120):
        decision = policy.decide(np.eye(2))
        assert np.isfinite(decision.score)
        policy.convert(decision)
    assert np.isfinite(policy.state.array("beta")).all()
    assert policy.state.array("beta")[2] + min(policy.theta_hat) > 0
