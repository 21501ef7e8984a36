"""The geometric law: in every round the conversion comes with the same chance, if it has not come yet."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from latecomer.delays.distribution import NEVER, Delays, Floats, Law
from latecomer.errors import InputError
from latecomer.validation import check_number

_RARE = 0.3
"""Below this chance, and up to a third, NumPy draws geometric numbers by inversion."""


@dataclass(frozen=True)
class Geometric(Law):
    """Geometric delays on {1, 2, …}: P(D <= k) = 1 − (1 − 1/μ)^k.

    Parameters
    ----------
    mean
        μ, the mean delay in rounds: at least `start`.
    start
        The shortest delay. 1 is the convention of the paper's experiments, where nothing arrives in the round of its
        decision; 0 gives {0, 1, …} with the same mean: P(D <= k) = 1 − (μ/(μ + 1))^(k + 1).

    Examples
    --------
    >>> from latecomer import delays
    >>> round(delays.Geometric(mean=100).cdf(100), 6)
    0.633968
    >>> round(delays.Geometric(mean=100, start=0).cdf(100), 6)
    0.633949
    """

    draws_one_by_one: ClassVar[bool] = True

    mean: float
    _: KW_ONLY
    start: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.start, bool) or self.start not in (0, 1):
            raise InputError(f"start must be 0 or 1, the shortest delay; got {self.start!r}", field="start")
        mean = check_number("mean", self.mean, f"a number of at least {self.start}")
        if not self.start <= mean < np.inf:
            raise InputError(
                f"mean must be finite and at least {self.start}, the shortest delay; got {self.mean!r}"
                + (": start=0 allows delays of 0" if 0.0 <= mean < 1.0 else ""),
                field="mean",
            )
        object.__setattr__(self, "mean", mean)

    @property
    def _chance(self) -> float:
        """The probability of arriving in a round, not having arrived before."""
        return 1.0 / (self.mean + 1 - self.start)

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        if self._chance >= _RARE or self.start == 0:
            return np.minimum(rng.geometric(self._chance, size) - (1 - self.start), NEVER)
        # by inversion, as `rng.geometric` has it, but with the logarithm taken once: the same numbers in two thirds
        times = rng.standard_exponential(size)
        times /= -math.log1p(-self._chance)
        np.ceil(times, out=times)
        np.minimum(times, NEVER, out=times)
        return times.astype(np.int64)

    def _cdf(self, k: Floats) -> Floats:
        trials = k + (1 - self.start)
        if self._chance == 1.0:  # and log 0 has no value
            return np.where(trials >= 1.0, 1.0, 0.0)
        return np.asarray(-np.expm1(trials * np.log1p(-self._chance)))
