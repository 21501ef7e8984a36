"""WaitingLinTS: sampling from closed rounds alone (see `waiting_lin_ucb`). Consistent; the variance is a plug-in.

Samples θ̃ ~ N(θ̂, c²·v̂·V⁻¹) with v̂ = p̂(1 − p̂), p̂ the rate of the closed rounds, and plays argmax ⟨a, θ̃⟩.
"""

import math

import numpy as np

from latecomer.core.closed_rounds import learn_from_closed_rounds
from latecomer.core.linalg.products import argmax_first, inner_products
from latecomer.core.ridge import estimate
from latecomer.core.sampling import sample_theta
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm, nothing_pending, width
from latecomer.policies.base.families import ThompsonPolicy
from latecomer.policies.base.rng import Draw


def settled_extras(dim: int, span: int, ridge: float) -> ExtraFields:
    """How many rounds have closed, and what they were worth."""
    return {"closed": np.zeros((), np.int64), "settled": np.zeros(())}


def settle(state: State, ring: Ring, now: int) -> None:
    """What closes at `now` enters V and B."""
    closed, worth = learn_from_closed_rounds(state, ring, now)
    state.closed += closed
    state.settled += worth


def variance(state: State, pending: float) -> float:
    """v̂ = p̂(1 − p̂), p̂ = (conversions + 1)/(rounds + 2) over the closed rounds."""
    rate = min(0.9, (state.settled + 1.0) / (state.closed + 2.0))
    return float(rate * (1.0 - rate))


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃⟩ with θ̃ ~ N(θ̂, c²·v̂·V⁻¹)."""
    estimate(state)
    sample_theta(state, state.exploration * math.sqrt(width(state, 0.0)), draws)
    inner_products(actions, state.sample, scores)
    return argmax_first(scores)


ALGORITHMS["WaitingLinTS"] = Algorithm(
    choose=choose,
    width=variance,
    pending=nothing_pending,
    settle=settle,
    draw=Draw.NORMAL,
    sampled=True,
    deferred=True,
    extras=settled_extras,
)


class WaitingLinTS(ThompsonPolicy):
    """Thompson sampling on closed rounds alone; parameters as in `LinTS`. `V` and `B` are theirs.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.WaitingLinTS(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """
