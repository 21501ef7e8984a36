"""LinUCB, which takes silence for an answer: the baseline that ignores delay (Abbasi-Yadkori et al. 2011).

Plays argmax ⟨a, θ̂_t⟩ + c·f_{t,δ}·‖a‖_{V_t⁻¹}. Under delays θ̂_t is biased low, and nothing here allows for it.
"""

import math

from latecomer.core.linalg.norms import squared_norms
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.ridge import estimate
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import radius
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm, width
from latecomer.policies.base.families import UCBPolicy


def plain_radius(state: State, pending: float) -> float:
    """f_{t,δ}, Eq. 3, whatever is pending."""
    return radius(state.rounds + 1, state.B.shape[0], state.ridge, state.delta)


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̂_t⟩ + c·f_{t,δ}·‖a‖_{V_t⁻¹}."""
    reach = state.exploration * width(state, 0.0)
    estimate(state)
    squared_norms(state.V_inv, actions, scores)
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, state.theta_hat) + reach * math.sqrt(scores[k])
    return argmax_first(scores)


ALGORITHMS["LinUCB"] = Algorithm(choose=choose, width=plain_radius)


class LinUCB(UCBPolicy):
    """Optimism without regard to delay, radius f; parameters as in `OTFLinUCB`.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.LinUCB(dim=2, window=100).decide([[1.0, 0.0], [0.0, 1.0]]).index
    0
    """
