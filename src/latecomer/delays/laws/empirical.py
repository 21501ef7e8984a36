"""The empirical law: delays as they were seen."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from latecomer.delays.distribution import NEVER, Delays, Floats, Law
from latecomer.errors import InputError
from latecomer.validation import check_positive


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Empirical(Law):
    """Each of the delays that were seen, as likely as it was frequent.

    Parameters
    ----------
    delays
        Whole rounds from 0 on, in any order, repeated or not; `NEVER` for never.
    weights
        How often each was seen, or with what probability: at least 0, of any sum. All the same unless given.

    Examples
    --------
    >>> from latecomer import delays
    >>> law = delays.Empirical([4, 0, 0, 7])
    >>> law
    Empirical(3 distinct delays from 0 to 7, mean 2.75)
    >>> law.cdf([0, 4])
    array([0.5 , 0.75])
    >>> delays.Empirical([0, 7], weights=[3, 1]).mean
    1.75

    Seconds become rounds by `from_times`:

    >>> delays.Empirical.from_times([30, 99.5, 100, 250], unit=100).cdf(0)
    0.5
    """

    draws_one_by_one: ClassVar[bool] = True

    delays: Delays
    """The distinct delays, ascending."""
    shares: Floats
    """The probability of each."""

    def __init__(self, delays: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> None:
        seen = _check_rounds(delays)
        counts = np.ones(len(seen)) if weights is None else _check_weights(weights, len(seen))
        distinct, place = np.unique(seen[counts > 0.0], return_inverse=True)
        totals = np.bincount(place, weights=counts[counts > 0.0])
        shares = totals / totals.sum()
        for name, array in (("delays", distinct), ("shares", shares)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_times(cls, delays: npt.ArrayLike, *, unit: float) -> "Empirical":
        """Make the law of ⌊delay/unit⌋: delays in seconds and a unit of 100 make rounds of 100 seconds."""
        times = np.asarray(delays)
        if times.dtype.kind not in "fiu" or not np.isfinite(times).all():
            raise InputError(
                "delays must be finite numbers; leave out what never came, or mix it in with Mixture", field="delays"
            )
        rounds = np.floor_divide(times, check_positive("unit", unit))
        return cls(np.minimum(rounds, NEVER).astype(np.int64))

    def __repr__(self) -> str:
        finite = self.delays[self.delays < NEVER]
        span = f" from {finite[0]} to {finite[-1]}" if len(finite) else ""
        never = ", never among them" if len(finite) < len(self.delays) else ""
        return f"Empirical({len(self.delays)} distinct delays{span}{never}, mean {self.mean:.6g})"

    @property
    def mean(self) -> float:
        """The weighted mean of the delays; infinite where never is among them."""
        return math.inf if self.delays[-1] == NEVER else float(self.shares @ self.delays)

    @cached_property
    def _ladder(self) -> Floats:
        """P(D <= the i-th delay), after a 0."""
        ladder = np.concatenate([[0.0], np.cumsum(self.shares)])
        return np.asarray(ladder / ladder[-1])

    @cached_property
    def _finite(self) -> Floats:
        return self.delays[self.delays < NEVER].astype(np.float64)

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        return self.delays[np.searchsorted(self._ladder[1:-1], rng.random(size), side="right")]

    def _cdf(self, k: Floats) -> Floats:
        return self._ladder[np.searchsorted(self._finite, k, side="right")]


def _check_rounds(delays: npt.ArrayLike) -> Delays:
    rounds = np.asarray(delays)
    if rounds.ndim != 1 or len(rounds) == 0:
        raise InputError(f"delays must be a list of at least one delay; got shape {rounds.shape}", field="delays")
    if rounds.dtype.kind not in "iu":
        raise InputError(
            f"delays must be whole numbers of rounds; got {rounds.dtype}: Empirical.from_times makes rounds of times",
            field="delays",
        )
    for worst in (rounds.min(), rounds.max()):
        if not 0 <= worst <= NEVER:
            raise InputError(f"delays must be at least 0 and at most NEVER, 2^62; got {worst}", field="delays")
    return rounds.astype(np.int64)


def _check_weights(weights: npt.ArrayLike, count: int) -> Floats:
    array = np.asarray(weights)
    if array.shape != (count,) or array.dtype.kind not in "fiu":
        raise InputError(
            f"weights must be {count} numbers, one for each delay; got shape {array.shape}, {array.dtype}",
            field="weights",
        )
    array = array.astype(np.float64)
    if not (np.isfinite(array) & (array >= 0.0)).all():
        raise InputError(
            f"weights must be at least 0 and finite; got {array[~(array >= 0.0) | np.isinf(array)][0]}", field="weights"
        )
    if not 0.0 < array.sum() < np.inf:
        raise InputError(f"weights must have a sum above 0 and finite; got {array.sum()}", field="weights")
    return array
