"""Greedy: the ridge estimate and no bonus.

Plays argmax ⟨a, θ̂_t⟩. Strong where contexts vary enough to explore for it; it can lock on to a bad arm for ever
where arms are fixed.
"""

from latecomer.core.linalg.products import argmax_first, inner_products
from latecomer.core.ridge import estimate
from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm
from latecomer.policies.base.clock import Clock, Span
from latecomer.policies.base.policy import LinearPolicy


def none(state: State, pending: float) -> float:
    """No exploration, no width."""
    return 0.0


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̂_t⟩."""
    estimate(state)
    inner_products(actions, state.theta_hat, scores)
    return argmax_first(scores)


ALGORITHMS["Greedy"] = Algorithm(choose=choose, width=none)


class Greedy(LinearPolicy):
    """The best action so far, always.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.Greedy(dim=2, window=100).decide([[1.0, 0.0], [0.0, 1.0]]).index
    0
    """

    def __init__(self, dim: int, window: Span, *, ridge: float = 1.0, clock: Clock | None = None) -> None:
        super().__init__(dim, window, ridge=ridge, clock=clock)
