"""The code that the paper's authors released (Vernade et al., ICML 2020), which makes the paper's figures.

Both policies take *squared* norms where the paper has norms: q_s in place of ‖A_s‖ in the window's sum, and aᵀV⁻¹a in
place of ‖a‖_{V⁻¹} in the bonus. Nothing is proved about them. They are here for reproduction, not for use.
"""

import math

from latecomer.core.choice import choose_by_sample
from latecomer.core.linalg.norms import squared_norms
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.ridge_statistics import estimate
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import pending_width
from latecomer.policies.base.algorithm import Algorithm, width
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.rng import Draw, Seed
from latecomer.validation import check_nonnegative, check_positive, check_probability


def released_alpha(state: State, pending_width: float) -> float:
    """√(2 ln(1/δ) + d ln(1 + n/(λd)) + λ) + Σ_{window} q_s, n past rounds. Differs from the paper: √λ is inside."""
    dim = state.B.shape[0]
    growth = dim * math.log(1.0 + state.rounds / (state.ridge * dim))
    return math.sqrt(2.0 * math.log(1.0 / state.delta) + growth + state.ridge) + pending_width


def released_ucb_term(state: State, c: float) -> float:
    """q_s = A_sᵀV_s⁻¹A_s itself, where the paper has its root."""
    return c * c


def choose_released_ucb(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̂⟩ + c·α·(aᵀV⁻¹a). Differs from the paper: the norm is squared."""
    bonus_scale = state.exploration * width(state, pending_width(state))
    estimate(state)
    squared_norms(state.V_inv, actions, scores)
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, state.theta_hat) + bonus_scale * scores[k]
    return argmax_first(scores)


def released_kappa(state: State, pending_width: float) -> float:
    """κ = σ0 + Σ_{window} q_s."""
    return math.sqrt(state.ridge) + pending_width


def released_ts_term(state: State, c: float) -> float:
    """q_s = A_sᵀ(κS)⁻¹A_s, with S after A_s was added: c/(1 + c) over κ."""
    q = c / (1.0 + c) / width(state, pending_width(state))
    return q * q


def choose_released_ts(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃⟩ with θ̃ ~ N(θ̂, κS⁻¹), S = σ0²I + Σ AAᵀ."""
    return choose_by_sample(state, actions, math.sqrt(width(state, pending_width(state))), draws, scores)


class ReleasedUCB(LinearPolicy):
    """The released OTFLinUCB."""

    algorithm = Algorithm(
        "ReleasedUCB", choose=choose_released_ucb, width=released_alpha, window_term=released_ucb_term
    )

    def __init__(
        self, dim: int, window: int, *, ridge: float = 1.0, delta: float = 0.1, exploration: float = 1.0
    ) -> None:
        numbers = {
            "delta": check_probability("delta", delta),
            "exploration": check_nonnegative("exploration", exploration),
        }
        super().__init__(dim, window, ridge=ridge, numbers=numbers)


class ReleasedTS(LinearPolicy):
    """The released OTFLinTS. `sigma` is 0.5 in its geometric experiments and 1 in the heavy-tailed one."""

    algorithm = Algorithm(
        "ReleasedTS",
        choose=choose_released_ts,
        width=released_kappa,
        window_term=released_ts_term,
        draw=Draw.NORMAL,
        needs_cholesky=True,
    )

    def __init__(self, dim: int, window: int, *, sigma: float = 0.5, seed: Seed = None) -> None:
        ridge = check_positive("sigma", sigma) ** 2
        super().__init__(dim, window, ridge=ridge, seed=seed)
