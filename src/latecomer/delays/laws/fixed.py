"""The two laws without chance: always the same delay, and never."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latecomer.delays.distribution import NEVER, Delays, Floats, Law
from latecomer.validation import check_integer


@dataclass(frozen=True)
class Fixed(Law):
    """Every conversion takes the same number of rounds; 0 is at once.

    Examples
    --------
    >>> from latecomer import delays
    >>> delays.Fixed(3).cdf([2, 3])
    array([0., 1.])
    """

    draws_one_by_one: ClassVar[bool] = True

    delay: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", check_integer("delay", self.delay, least=0))

    @property
    def mean(self) -> float:
        """The delay itself."""
        return float(self.delay)

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:  # noqa: ARG002
        return np.full(size, self.delay, np.int64)

    def _cdf(self, k: Floats) -> Floats:
        return np.where(k >= self.delay, 1.0, 0.0)


@dataclass(frozen=True)
class Never(Law):
    """No conversion ever arrives; in a `Mixture`, the share of those that are lost.

    Examples
    --------
    >>> from latecomer import delays
    >>> delays.Mixture([delays.Fixed(3), delays.Never()], weights=[0.75, 0.25]).cdf(1_000_000)
    0.75
    """

    draws_one_by_one: ClassVar[bool] = True

    @property
    def mean(self) -> float:
        """Infinity: the conversion never comes."""
        return math.inf

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:  # noqa: ARG002
        return np.full(size, NEVER, np.int64)

    def _cdf(self, k: Floats) -> Floats:
        return np.zeros_like(k)
