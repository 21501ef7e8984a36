"""Equalities that hold for every trace, to 1e-12 relative."""

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make, unit_actions

import latecomer as lc

RIDGES = [0.5, 1.0, 3.0]


def played(name: str, dim: int, window: int, rounds: int, ridge: float) -> tuple[lc.OTFLinUCB, np.ndarray]:
    """Return a policy after `rounds` rounds, and the actions that it played."""
    policy = make(name, dim, window, ridge=ridge)
    rng = np.random.default_rng(dim)
    actions = []
    for _ in range(rounds):
        decision = policy.decide(unit_actions(rng, 4, dim))
        actions.append(decision.action)
        if rng.random() < 0.5:
            policy.convert(decision)
    return policy, np.array(actions)


@pytest.mark.parametrize(
    ("ridge", "rounds"), [(3.0, 70), *(pytest.param(ridge, 300, marks=pytest.mark.soak) for ridge in RIDGES)]
)
@pytest.mark.parametrize("name", EVERY_POLICY)
def test_the_sum_of_log_norms_is_the_log_determinant(name: str, ridge: float, rounds: int) -> None:
    """Σ ln(1 + ‖A_t‖²_{V_t⁻¹}) = ln det(V)/λ^d, and `log_det` is that sum; over closed rounds, if V waits for them."""
    policy, actions = played(name, 2, 20, rounds, ridge)
    if name.startswith("Waiting"):
        actions = actions[: rounds - 20 - 1]
    V, total = ridge * np.eye(2), 0.0
    for action in actions:
        total += np.log1p(action @ np.linalg.solve(V, action))
        V += np.outer(action, action)
    direct = np.linalg.slogdet(V / ridge)[1]
    assert total == pytest.approx(direct, rel=1e-12)
    assert policy.log_det == pytest.approx(direct, rel=1e-12)


@pytest.mark.parametrize("rounds", [150, pytest.param(500, marks=pytest.mark.soak)])
@pytest.mark.parametrize("ridge", RIDGES)
def test_the_squared_norms_of_the_past_sum_to_a_trace(ridge: float, rounds: int) -> None:
    """Σ_{s<t} ‖A_s‖²_{V_t⁻¹} = d − λ tr V_t⁻¹."""
    policy, _ = played("OTFLinUCB-exact", 5, 10**6, rounds, ridge)
    norms = policy.state.ring["norm"]  # the window holds the whole past
    assert norms.sum() == pytest.approx(5 - ridge * np.trace(policy.V_inv), rel=1e-12)


@pytest.mark.parametrize(
    ("dim", "rounds"), [(1, 400), (2, 1040), (20, 400), (64, 300), *(pytest.param(dim, 3000, marks=pytest.mark.soak)
    for dim in (1, 2, 5, 16, 20, 64))]
)  # fmt: skip
def test_norms_kept_in_the_window_are_the_direct_ones(dim: int, rounds: int) -> None:
    """Windows later, and past the check of round 1,024, the O(m d) norms are A_sᵀ V⁻¹ A_s, V⁻¹ computed afresh."""
    policy, actions = played("OTFLinUCB-exact", dim, 200, rounds, 1.0)
    window = actions[-200:]
    direct = np.sqrt(np.sum(window.T * np.linalg.solve(policy.V, window.T), axis=0))
    assert policy.pending_width == pytest.approx(direct.sum(), rel=1e-12)


@pytest.mark.parametrize("rounds", [300, pytest.param(2000, marks=pytest.mark.soak)])
def test_V_is_the_sum_of_what_was_played(rounds: int) -> None:
    policy, actions = played("OTFLinUCB-exact", 2, 20, rounds, 3.0)
    np.testing.assert_allclose(policy.V, 3.0 * np.eye(2) + actions.T @ actions, rtol=1e-12)
    np.testing.assert_allclose(policy.V_inv @ policy.V, np.eye(2), atol=1e-11)
