"""The Pareto law: the heaviest tail in common use."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from latecomer.delays.distribution import Delays, Floats, Law
from latecomer.delays.laws.discretise import discretise, mean_of_floor
from latecomer.validation import check_positive


@dataclass(frozen=True)
class Pareto(Law):
    """D = ⌊X/unit⌋ with P(X > x) = (scale/x)^shape from x = scale on.

    Parameters
    ----------
    shape
        The tail's exponent; up to 1 the mean is infinite.
    scale
        The shortest X, in the measure of your choice.
    unit
        How much of that measure makes a round: 1 where X is in rounds, 100 for a round of 100 seconds.

    Examples
    --------
    >>> from latecomer import delays
    >>> law = delays.Pareto(shape=0.5, scale=60, unit=30)  # at least a minute, in rounds of half a minute
    >>> law.cdf([1, 7])
    array([0. , 0.5])
    >>> law.mean
    inf
    """

    shape: float
    scale: float
    _: KW_ONLY
    unit: float = 1.0

    def __post_init__(self) -> None:
        for name in ("shape", "scale", "unit"):
            object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        check_positive("scale / unit", self._shortest)

    @property
    def _shortest(self) -> float:
        """The shortest X, in rounds."""
        return self.scale / self.unit

    @cached_property
    def mean(self) -> float:
        """E[D], in rounds, of the floored delay; infinite for a shape of at most 1."""
        if self.shape <= 1.0:
            return math.inf
        return mean_of_floor(
            tail=lambda x: np.exp(self._log_tail(x)),
            slope=lambda x: -self.shape / x * np.exp(self._log_tail(x)),
            area=lambda start, _: self._area(start),
            certain=math.floor(self._shortest),
            last=math.inf,
        )

    def _log_tail(self, x: Floats) -> Floats:
        """The logarithm of P(X >= x), x in rounds."""
        with np.errstate(divide="ignore"):  # ln 0 at x = ∞
            return self.shape * np.log(np.minimum(self._shortest / x, 1.0))

    def _area(self, start: float) -> float:
        """∫ P(X >= x) dx to infinity, from a point past the shortest X."""
        return float(start / (self.shape - 1.0) * np.exp(self._log_tail(np.asarray(start))))

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        with np.errstate(over="ignore"):  # beyond the largest number is never
            return discretise(self._shortest * np.exp(rng.standard_exponential(size) / self.shape))

    def _cdf(self, k: Floats) -> Floats:
        return -np.expm1(self._log_tail(k + 1.0))
