"""Inequalities of the paper (Vernade et al., ICML 2020), on policies that have played."""

import numpy as np
import pytest
from policy_cases import unit_actions

import latecomer as lc


@pytest.mark.parametrize(
    ("window", "ridge", "rounds"),
    [
        *((1, 0.5, 60), (7, 1.0, 100), (100, 3.0, 200)),
        *(pytest.param(m, ridge, 400, marks=pytest.mark.soak) for m in (1, 7, 100) for ridge in (0.5, 1.0, 3.0)),
    ],
)
def test_the_exact_width_is_below_the_buffered_and_below_the_root(window: int, ridge: float, rounds: int) -> None:
    """On the same actions: exact <= buffered, and Σ_{window} ‖A_s‖_{V⁻¹} <= √(m d)."""
    dim = 5
    exact = lc.OTFLinUCB(dim, window, ridge=ridge, width="exact")
    buffered = lc.OTFLinUCB(dim, window, ridge=ridge, width="buffered")
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        action = unit_actions(rng, 1, dim)
        exact.decide(action)
        buffered.decide(action)
        assert exact.pending_width <= buffered.pending_width * (1 + 1e-12)
        assert exact.pending_width <= np.sqrt(window * dim) * (1 + 1e-12)


@pytest.mark.parametrize("rounds", [150, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("ridge", [0.5, 1.0, 3.0])
def test_the_elliptical_potential(ridge: float, rounds: int) -> None:
    """Σ min(1, ‖A_t‖²) <= 2 ln det(V)/λ^d <= 2d ln(1 + T/(dλ))."""
    dim = 2
    policy = lc.OTFLinUCB(dim, 10, ridge=ridge)
    rng = np.random.default_rng(2)
    potential = 0.0
    for _ in range(rounds):
        V_inv = policy.V_inv
        action = policy.decide(unit_actions(rng, 5, dim)).action
        potential += min(1.0, float(action @ V_inv @ action))
    assert potential <= 2 * policy.log_det <= 2 * dim * np.log(1 + rounds / (dim * ridge))


def covers(seed: int, dim: int, window: int, mean_delay: float, rounds: int, delta: float) -> bool:
    """Tell whether ‖θ̂_t − τ_m θ‖_{V_t} <= α_t held at every round of one run."""
    rng = np.random.default_rng(seed)
    theta = np.full(dim, 1 / np.sqrt(dim))
    tau = 1 - (1 - 1 / mean_delay) ** window
    policy = lc.OTFLinUCB(dim, window, delta=delta)
    due: dict[int, list[int]] = {}
    for t in range(1, rounds + 1):
        error = policy.theta_hat - tau * theta
        if np.sqrt(error @ policy.V @ error) > policy.width:
            return False
        decision = policy.decide(unit_actions(rng, 5, dim))
        if rng.random() < decision.action @ theta:
            due.setdefault(t + int(rng.geometric(1 / mean_delay)), []).append(t)
        for round in due.pop(t, []):
            policy.convert(round)
    return True


@pytest.mark.parametrize("runs", [10, pytest.param(200, marks=pytest.mark.soak)])
def test_theorem_1_covers_in_many_runs(runs: int) -> None:
    """Coverage at every t with probability at least 1 − 2δ; the bound is loose, and no run of these breaks it."""
    delta = 0.1
    held = [covers(seed, 2, 20, 20.0, 150, delta) for seed in range(runs)]
    assert np.mean(held) >= 1 - 2 * delta
    assert all(held)
