"""Uniform: every action alike. The yardstick below which a policy has learnt nothing."""

from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm
from latecomer.policies.base.clock import Clock, Span
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.rng import Draw, Seed


def none(state: State, pending: float) -> float:
    """It widens nothing."""
    return 0.0


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """Each of the K actions with probability 1/K, which is also its score."""
    count = int(actions.shape[0])
    for k in range(count):
        scores[k] = 1.0 / count
    return min(int(draws[0] * count), count - 1)


ALGORITHMS["Uniform"] = Algorithm(choose=choose, width=none, draw=Draw.UNIFORM)


class Uniform(LinearPolicy):
    """Chooses at random, and keeps the statistics all the same.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.Uniform(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).score
    0.5
    """

    def __init__(
        self, dim: int, window: Span, *, ridge: float = 1.0, seed: Seed = None, clock: Clock | None = None
    ) -> None:
        super().__init__(dim, window, ridge=ridge, seed=seed, clock=clock)
