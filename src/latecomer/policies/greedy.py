"""Greedy: the ridge estimate and no bonus.

Plays argmax ⟨a, θ̂_t⟩, θ̂_t of Eq. 1 of the paper (Vernade et al., ICML 2020). Strong where contexts vary enough to
explore by themselves; it can play a bad arm for ever where arms are fixed. The baseline without exploration.
"""

from typing import Unpack

from latecomer.core.linalg.products import argmax_first, inner_products
from latecomer.core.ridge_statistics import estimate
from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import Algorithm, zero_width
from latecomer.policies.base.clock import Span
from latecomer.policies.base.parameters import CommonParameters
from latecomer.policies.base.policy import LinearPolicy


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """Score by ⟨a, θ̂_t⟩, and choose the largest."""
    estimate(state)
    inner_products(actions, state.theta_hat, scores)
    return argmax_first(scores)


class Greedy(LinearPolicy):
    """The best action so far, always.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.Greedy(dim=2, window=100).decide([[1.0, 0.0], [0.0, 1.0]]).index
    0
    """

    algorithm = Algorithm("Greedy", choose=choose, width=zero_width)

    def __init__(self, dim: int, window: Span, *, ridge: float = 1.0, **common: Unpack[CommonParameters]) -> None:
        super().__init__(dim, window, ridge=ridge, **common)
