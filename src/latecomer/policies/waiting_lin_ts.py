"""WaitingLinTS: sampling from closed rounds alone (see `waiting_lin_ucb`). Consistent; the variance is a plug-in.

Samples θ̃ ~ N(θ̂, c²·v̂·V⁻¹) with v̂ = p̂(1 − p̂), p̂ the rate of the closed rounds, and plays argmax ⟨a, θ̃⟩.
"""

import math

import numpy as np

from latecomer.arguments import nonnegative
from latecomer.core.draws import draw
from latecomer.core.ridge import estimate
from latecomer.core.settling import settle_closed
from latecomer.core.state import Array, Extras, Ring, State
from latecomer.core.vectors import first_best, inner_products
from latecomer.policies.dispatch import ALGORITHMS, Algorithm, width
from latecomer.policies.learner import Learner
from latecomer.policies.randomness import Draw, Randomness, Seed
from latecomer.policies.stamps import Clock, Span
from latecomer.policies.waiting_lin_ucb import nothing_pending


def settled_extras(dim: int, span: int, ridge: float) -> Extras:
    """How many rounds have closed, and what they were worth."""
    return {"closed": np.zeros((), np.int64), "settled": np.zeros(())}


def settle(state: State, ring: Ring, now: int) -> None:
    """What closes at `now` enters V and B."""
    closed, worth = settle_closed(state, ring, now)
    state.closed += closed
    state.settled += worth


def variance(state: State, pending: float) -> float:
    """v̂ = p̂(1 − p̂), p̂ = (conversions + 1)/(rounds + 2) over the closed rounds."""
    rate = min(0.9, (state.settled + 1.0) / (state.closed + 2.0))
    return float(rate * (1.0 - rate))


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃⟩ with θ̃ ~ N(θ̂, c²·v̂·V⁻¹)."""
    estimate(state)
    draw(state, state.exploration * math.sqrt(width(state, 0.0)), draws)
    inner_products(actions, state.sample, scores)
    return first_best(scores)


ALGORITHMS["WaitingLinTS"] = Algorithm(choose=choose, width=variance, pending=nothing_pending, settle=settle)


class WaitingLinTS(Learner):
    """Thompson sampling on closed rounds alone; parameters as in `MaturedLinTS`. `V` and `B` are theirs.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.WaitingLinTS(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 1.0,
        exploration: float = 1.0,
        seed: Seed = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            dim,
            window,
            ridge=ridge,
            sampled=True,
            deferred=True,
            numbers={"exploration": nonnegative("exploration", exploration)},
            extras=settled_extras,
            randomness=Randomness(Draw.NORMAL, seed),
            clock=clock,
        )
