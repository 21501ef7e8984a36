"""MaturedLinUCB: optimism over the matured estimate (see `matured_lin_ts`). A heuristic.

Plays argmax ⟨a, θ̂⟩ + c·√v̂·√(2 ln(1/δ) + ln det(V)/λ^d)·‖a‖_{G⁻¹} with θ̂ = G⁻¹B and v̂ = p̂(1 − p̂): the radius of a
self-normalised bound with a plug-in variance, and with maturity in place of the sum over open rounds.
"""

import math

from latecomer.core.gram import gram_estimate, gram_norms
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.maturity import conversion_rate, maturity_fields, update_maturity
from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm, nothing_pending, width
from latecomer.policies.base.families import UCBPolicy


def radius(state: State, pending: float) -> float:
    """√v̂·√(2 ln(1/δ) + ln det(V)/λ^d)."""
    variance = conversion_rate(state) * (1.0 - conversion_rate(state))
    return math.sqrt(variance * (-2.0 * math.log(state.delta) + state.log_det))


def settle(state: State, ring: Ring, now: int) -> None:
    """Older rounds weigh more."""
    update_maturity(state, ring, now)


def estimate(state: State) -> None:
    """θ̂ = G⁻¹B."""
    gram_estimate(state)


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̂⟩ + c·radius·‖a‖_{G⁻¹}."""
    gram_estimate(state)
    gram_norms(state, actions, scores)
    reach = state.exploration * width(state, 0.0)
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, state.theta_hat) + reach * math.sqrt(scores[k])
    return argmax_first(scores)


ALGORITHMS["MaturedLinUCB"] = Algorithm(
    choose=choose, width=radius, pending=nothing_pending, settle=settle, estimate=estimate, extras=maturity_fields
)


class MaturedLinUCB(UCBPolicy):
    """Optimism that weighs every round by how much of its feedback should have come; parameters as in `OTFLinUCB`.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.MaturedLinUCB(dim=2, window=100).decide([[1.0, 0.0], [0.0, 1.0]]).index
    0
    """
