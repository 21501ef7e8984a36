"""WaitingLinUCB: learn from a round when its window has closed, not before. A theorem; production systems do it.

V and B sum over closed rounds alone, for which the answer is known: LinUCB with the radius
r_t = √λ + ½√(2 ln(1/δ) + ln det(V_t)/λ^d), valid with probability 1 − δ. (Counting conversions as they arrive and
silence only at the end of the window would be biased.)
"""

import math

from latecomer.core.closed_rounds import learn_from_closed_rounds
from latecomer.core.linalg.norms import squared_norms
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.ridge import estimate
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import bernoulli_radius
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm, nothing_pending, width
from latecomer.policies.base.families import UCBPolicy


def settle(state: State, ring: Ring, now: int) -> None:
    """What closes at `now` enters V and B."""
    learn_from_closed_rounds(state, ring, now)


def radius(state: State, pending: float) -> float:
    """r_t."""
    return bernoulli_radius(state)


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̂⟩ + c·r_t·‖a‖_{V⁻¹}."""
    estimate(state)
    squared_norms(state.V_inv, actions, scores)
    reach = state.exploration * width(state, 0.0)
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, state.theta_hat) + reach * math.sqrt(scores[k])
    return argmax_first(scores)


ALGORITHMS["WaitingLinUCB"] = Algorithm(
    choose=choose, width=radius, pending=nothing_pending, settle=settle, deferred=True
)


class WaitingLinUCB(UCBPolicy):
    """LinUCB on closed rounds alone; parameters as in `OTFLinUCB`. `V` and `B` are theirs.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.WaitingLinUCB(dim=2, window=100)
    >>> policy.convert(policy.decide([[1.0, 0.0], [0.0, 1.0]])).name, policy.B.tolist()
    ('ACCEPTED', [0.0, 0.0])
    """
