"""The tight width of OTFLinUCB: a theorem, beyond the paper (Vernade et al., ICML 2020).

An in-window conversion is Bernoulli(τ_m⟨A_s, θ⟩), so its noise is ½-sub-Gaussian. The ridge pulls ⟨a, θ̂_t⟩ by at most
λ‖V⁻¹a‖₂ ≤ √λ‖a‖_{V⁻¹}. Only rounds O that are open and have not converted can still add to B, and they only add. With
probability 1 − δ, at every round and for every action, τ_m⟨a, θ⟩ is at most U_t(a) at c = 1:

    U_t(a) = ⟨a, θ̂_t⟩ + c·(½√(2 ln(1/δ) + ln det(V_t)/λ^d)·‖a‖_{V⁻¹} + λ‖V⁻¹a‖₂ + Σ_{s∈O} (aᵀV⁻¹A_s)₊)

The proof, and that of the regret, are in docs/explanation/theory/tight-width.md. Revocations are outside of the
theorem: a conversion that was credited and is revoked takes from B. O(K·m·d) a round.
"""

import math

from latecomer.core.linalg.products import argmax_first, dot, multiply, row_dot
from latecomer.core.open_rounds import count_open, possible_gain
from latecomer.core.ridge_statistics import estimate
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import bernoulli_radius, noise_radius
from latecomer.policies.base.algorithm import Algorithm


def largest_factor(state: State, pending_width: float) -> float:
    """r_t + √|O|: the bonus is at most this times ‖a‖_{V⁻¹}, since Σ_{s∈O} (aᵀV⁻¹A_s)₊ ≤ √|O|·‖a‖_{V⁻¹}."""
    return bernoulli_radius(state) + pending_width


def root_of_open(state: State, ring: Ring, now: int) -> float:
    """Return √|O|, the root of the number of open rounds."""
    return math.sqrt(count_open(state, ring, now))


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """U_t(a), the module's formula."""
    radius, dim = noise_radius(state), state.B.shape[0]
    estimate(state)
    for k in range(actions.shape[0]):
        multiply(state.V_inv, actions[k], state.u)
        noise = radius * math.sqrt(dot(actions[k], state.u, dim))
        bias = state.ridge * math.sqrt(dot(state.u, state.u, dim))
        bonus = noise + bias + possible_gain(state, ring, state.u)
        scores[k] = row_dot(actions, k, state.theta_hat) + state.exploration * bonus
    return argmax_first(scores)


TIGHT = Algorithm("OTFLinUCB, tight", choose=choose, width=largest_factor, pending_width=root_of_open)
