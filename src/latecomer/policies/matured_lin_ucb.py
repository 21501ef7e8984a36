"""MaturedLinUCB: optimism over the matured estimate (see `matured_lin_ts`). A heuristic.

Plays argmax ⟨a, θ̂⟩ + c·√v̂·√(2 ln(1/δ) + ln det(V)/λ^d)·‖a‖_{G⁻¹} with θ̂ = G⁻¹B and v̂ = p̂(1 − p̂): the radius of a
self-normalised bound with a plug-in variance, and with maturity in place of the sum over open rounds of the paper
(Vernade et al., ICML 2020).
"""

import math

from latecomer.core.choice import add_bonuses
from latecomer.core.delay_curve import count_closed_delay
from latecomer.core.linalg.products import argmax_first
from latecomer.core.maturity import conversion_rate, forget_maturity, maturity_fields, update_maturity
from latecomer.core.rates import bernoulli_variance
from latecomer.core.state import Array, Ring, State
from latecomer.core.weighted_gram import gram_estimate, gram_norms
from latecomer.policies.base.algorithm import Algorithm, width, zero_pending_width
from latecomer.policies.base.families import UCBPolicy


def radius(state: State, pending_width: float) -> float:
    """√v̂·√(2 ln(1/δ) + ln det(V)/λ^d)."""
    variance = bernoulli_variance(conversion_rate(state))
    return math.sqrt(variance * (-2.0 * math.log(state.delta) + state.log_det))


def advance_time(state: State, ring: Ring, now: int) -> None:
    """Weigh every round by its maturity at `now`."""
    update_maturity(state, ring, now)


def correct_closed_round(state: State, ring: Ring, slot: int, change: float, delay: int) -> None:
    """Count the delay of a conversion that came in the grace; G had the round in full before."""
    count_closed_delay(state, delay)


def forget(state: State, factor: float) -> None:
    """Weigh all rounds in G by a factor."""
    forget_maturity(state, factor)


def estimate(state: State) -> None:
    """Fill in θ̂ = G⁻¹B."""
    gram_estimate(state)


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̂⟩ + c·radius·‖a‖_{G⁻¹}."""
    gram_estimate(state)
    gram_norms(state, actions, scores)
    add_bonuses(actions, state.theta_hat, state.exploration * width(state, 0.0), scores)
    return argmax_first(scores)


class MaturedLinUCB(UCBPolicy):
    """Optimism that weighs every round by the share of its feedback that is due; parameters as in `OTFLinUCB`.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.MaturedLinUCB(dim=2, window=100).decide([[1.0, 0.0], [0.0, 1.0]]).index
    0
    """

    algorithm = Algorithm(
        "MaturedLinUCB",
        choose=choose,
        width=radius,
        pending_width=zero_pending_width,
        advance_time=advance_time,
        correct_closed_round=correct_closed_round,
        forget=forget,
        estimate=estimate,
        needs_arrival_times=True,
        extra_fields=maturity_fields,
    )
