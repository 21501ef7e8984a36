"""The log-normal law: delays whose logarithm is normal."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from latecomer.delays.distribution import Delays, Floats, Law
from latecomer.delays.laws.discretise import EXACT_TERMS, discretise, mean_of_floor
from latecomer.errors import InputError
from latecomer.validation import check_number, check_positive


@dataclass(frozen=True)
class LogNormal(Law):
    """D = ⌊X/unit⌋ with ln X ~ N(ln median, sigma²), given X < at_most.

    Parameters
    ----------
    median
        The median of X before `at_most` cuts its tail, in the measure of your choice.
    sigma
        The standard deviation of ln X: 1 is a factor of e either side of the median, 2.3 a factor of ten.
    unit
        How much of that measure makes a round: 1 where X is in rounds, 100 for a round of 100 seconds.
    at_most
        Where X ends, in the same measure; infinite unless given.

    Examples
    --------
    >>> from latecomer import delays
    >>> law = delays.LogNormal(median=3600, sigma=1, unit=60)  # an hour, in rounds of a minute
    >>> law.cdf(59)
    0.5
    >>> round(law.mean, 3)
    98.423
    """

    median: float
    sigma: float
    _: KW_ONLY
    unit: float = 1.0
    at_most: float = math.inf

    def __post_init__(self) -> None:
        for name in ("median", "sigma", "unit"):
            object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        check_positive("median / unit", self.median / self.unit)
        at_most = check_number("at_most", self.at_most, "a number above 0, or infinity")
        if not at_most > 0.0:
            raise InputError(f"at_most must be above 0, or infinity; got {self.at_most!r}", field="at_most")
        object.__setattr__(self, "at_most", at_most)
        if self._kept < 1e-200:
            raise InputError(
                f"at_most must leave some of the law; got {self.at_most!r} where the median is {self.median!r} "
                f"and sigma {self.sigma!r}: raise at_most, or lower the median",
                field="at_most",
            )

    @property
    def _mu(self) -> float:
        """The mean of ln X, X in rounds."""
        return math.log(self.median / self.unit)

    @property
    def _end(self) -> float:
        """The largest X, in rounds."""
        return self.at_most / self.unit

    @cached_property
    def _kept(self) -> float:
        """P(X < at_most) before the cut."""
        return float(ndtr(self._normal(np.asarray(self._end))))

    @cached_property
    def mean(self) -> float:
        """E[D], in rounds, of the floored delay."""
        return self._mean(EXACT_TERMS)

    def _mean(self, terms: int) -> float:
        """Compute the mean with so many terms of its sum added one by one."""
        return mean_of_floor(
            terms=terms,
            tail=self._tail,
            slope=self._slope,
            area=self._area,
            certain=self._certain,
            last=self._end if math.isinf(self._end) else math.ceil(self._end) - 1.0,
        )

    @property
    def _certain(self) -> float:
        """A whole number of rounds that X exceeds, but for a chance of 1e-19, which is nothing beside 1."""
        log = self._mu + self.sigma * float(ndtri(1e-19 * self._kept))
        return math.floor(math.exp(min(log, 700.0)))

    def _normal(self, x: Floats) -> Floats:
        """Return the number of standard deviations that ln x lies above the median."""
        return (np.log(x) - self._mu) / self.sigma

    def _tail(self, x: Floats) -> Floats:
        """P(X >= x), x in rounds."""
        if math.isinf(self._end):
            return np.asarray(ndtr(-self._normal(x)))
        return np.asarray(np.maximum(1.0 - ndtr(self._normal(x)) / self._kept, 0.0))

    def _slope(self, x: Floats) -> Floats:
        return -np.exp(-0.5 * self._normal(x) ** 2) / (x * self.sigma * math.sqrt(2.0 * math.pi) * self._kept)

    def _area(self, start: float, stop: float) -> float:
        """∫ P(X >= x) dx by parts: [x·P(X >= x)] + E[X; start < X < stop]."""
        ends = np.array([start, stop])
        sides = np.where(np.isinf(ends), 0.0, np.nan_to_num(ends, posinf=0.0) * self._tail(ends))
        with np.errstate(over="ignore"):  # a mean beyond the largest number is infinite
            below = np.exp(self._mu + self.sigma**2 / 2.0 + log_ndtr(self._normal(ends) - self.sigma))
        return float(sides[1] - sides[0] + (below[1] - below[0]) / self._kept)

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        normal = rng.standard_normal(size) if math.isinf(self._end) else ndtri(self._kept * rng.random(size))
        with np.errstate(over="ignore"):  # beyond the largest number is never
            x = np.exp(self._mu + self.sigma * normal)
        return discretise(np.minimum(x, np.nextafter(self._end, 0.0)))

    def _cdf(self, k: Floats) -> Floats:
        return np.asarray(np.minimum(ndtr(self._normal(k + 1.0)) / self._kept, 1.0))
