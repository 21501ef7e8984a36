"""Constructors that several policies share: a family's parameters, checked in one place."""

from latecomer.arguments import nonnegative, probability
from latecomer.policies.learner import Learner
from latecomer.policies.randomness import Seed
from latecomer.policies.stamps import Clock, Span


class Optimist(Learner):
    """A policy that adds a bonus; parameters as in `OTFLinUCB`."""

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 1.0,
        delta: float = 0.1,
        exploration: float = 1.0,
        clock: Clock | None = None,
    ) -> None:
        numbers = {"delta": probability("delta", delta), "exploration": nonnegative("exploration", exploration)}
        super().__init__(dim, window, ridge=ridge, numbers=numbers, clock=clock)


class Sampler(Learner):
    """A policy that samples; parameters as in `OTFLinTS`."""

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
        numbers = {"exploration": nonnegative("exploration", exploration)}
        super().__init__(dim, window, ridge=ridge, numbers=numbers, seed=seed, clock=clock)
