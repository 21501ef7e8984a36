"""Uniform: every action with the same probability. A policy that does no better has learnt nothing."""

from typing import Unpack

from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import Algorithm, zero_width
from latecomer.policies.base.clock import Span
from latecomer.policies.base.parameters import CommonParameters
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.rng import Draw


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """Choose each of the K actions with probability 1/K, which is also its score."""
    count = int(actions.shape[0])
    for k in range(count):
        scores[k] = 1.0 / count
    return min(int(draws[0] * count), count - 1)


class Uniform(LinearPolicy):
    """Random play, which keeps the statistics all the same.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.Uniform(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).score
    0.5
    """

    algorithm = Algorithm("Uniform", choose=choose, width=zero_width, draw=Draw.UNIFORM, scores_are_probabilities=True)

    def __init__(self, dim: int, window: Span, *, ridge: float = 1.0, **common: Unpack[CommonParameters]) -> None:
        super().__init__(dim, window, ridge=ridge, **common)
