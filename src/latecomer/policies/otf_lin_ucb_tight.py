"""The tight width of OTFLinUCB: a theorem, beyond the paper (Vernade et al., ICML 2020).

An in-window conversion is Bernoulli(τ_m⟨A_s, θ⟩), so its noise is ½-sub-Gaussian and 2f becomes
r_t = √λ + ½√(2 ln(1/δ) + ln det(V_t)/λ^d), with probability 1 − δ. Only rounds O that are open and have not converted
can still add to B, and they only add:

    U_t(a) = ⟨a, θ̂_t⟩ + c·(r_t‖a‖_{V⁻¹} + min(Σ_{s∈O} (aᵀV⁻¹A_s)₊, √|O|·‖a‖_{V⁻¹}))

The paper's regret proof goes through. O(K·m·d) a round.
"""

import math

from latecomer.core.linalg.products import argmax_first, dot, multiply, row_dot
from latecomer.core.open_rounds import count_open, possible_gain
from latecomer.core.ridge_statistics import estimate
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import bernoulli_radius
from latecomer.policies.base.algorithm import Algorithm


def largest_factor(state: State, pending_width: float) -> float:
    """r_t + √|O|, the largest factor of ‖a‖_{V⁻¹}."""
    return bernoulli_radius(state) + pending_width


def root_of_open(state: State, ring: Ring, now: int) -> float:
    """Return √|O|, the root of the number of open rounds."""
    return math.sqrt(count_open(state, ring, now))


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """U_t(a), the module's formula."""
    radius, most = bernoulli_radius(state), math.sqrt(state.pending)
    estimate(state)
    for k in range(actions.shape[0]):
        multiply(state.V_inv, actions[k], state.u)
        norm = math.sqrt(dot(actions[k], state.u, state.B.shape[0]))
        pending_gain = min(possible_gain(state, ring, state.u), most * norm)
        scores[k] = row_dot(actions, k, state.theta_hat) + state.exploration * (radius * norm + pending_gain)
    return argmax_first(scores)


TIGHT = Algorithm("OTFLinUCB, tight", choose=choose, width=largest_factor, pending_width=root_of_open)
