"""The law of a histogram: delays that are known to a bin, and anywhere within it."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from latecomer.delays.distribution import Delays, Floats, Law
from latecomer.delays.laws.discretise import discretise
from latecomer.errors import InputError
from latecomer.validation import check_positive


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Histogram(Law):
    """A delay in bin i with probability shares[i], uniform within the bin, floored to rounds of `unit`.

    However fine the rounds, it takes no more memory than its bins.

    Parameters
    ----------
    ends
        Where each bin ends, ascending, in seconds or any other measure; the first begins at 0.
    shares
        The probability of each bin, or its count: at least 0, of any sum.
    unit
        The length of a round, in the same measure.

    Examples
    --------
    >>> from latecomer import delays
    >>> law = delays.Histogram(ends=[60.0, 3600.0], shares=[1, 3], unit=30.0)
    >>> law.cdf([0, 1, 60, 119])  # rounds of half a minute; a quarter comes in the first two
    array([0.125, 0.25 , 0.625, 1.   ])
    >>> round(law.mean, 3)
    45.5
    """

    draws_one_by_one: ClassVar[bool] = True

    ends: Floats
    shares: Floats
    unit: float

    def __init__(self, ends: npt.ArrayLike, shares: npt.ArrayLike, *, unit: float = 1.0) -> None:
        edges, weights = _check_numbers("ends", ends), _check_numbers("shares", shares)
        if not (edges[0] > 0.0 and (np.diff(edges) > 0.0).all()):
            raise InputError(
                "ends must be above 0 and ascending; sort the bins, and join those of no width", field="ends"
            )
        if len(weights) != len(edges):
            raise InputError(
                f"shares must be {len(edges)} numbers, one for each bin; got {len(weights)}", field="shares"
            )
        if not ((weights >= 0.0).all() and weights.sum() > 0.0):
            raise InputError(
                f"shares must be at least 0, and some above; got {weights.min()} among them", field="shares"
            )
        for name, array in (("ends", edges), ("shares", weights / weights.sum())):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "unit", check_positive("unit", unit))

    def __repr__(self) -> str:
        last = math.ceil(self.ends[-1] / self.unit) - 1
        return f"Histogram({len(self.ends)} bins, delays from 0 to {last:,} rounds, mean {self.mean:.6g})"

    @cached_property
    def _corners(self) -> tuple[Floats, Floats]:
        """Edges in rounds, from 0, and P(X <= edge)."""
        ladder = np.concatenate([[0.0], np.cumsum(self.shares)])
        return np.concatenate([[0.0], self.ends / self.unit]), ladder / ladder[-1]

    @cached_property
    def mean(self) -> float:
        """E⌊X⌋: over a bin from a to b it is (G(b) − G(a))/(b − a), where G(x) = ∫₀ˣ ⌊y⌋ dy."""
        edges, ladder = self._corners
        whole = np.floor(edges)
        area = whole * (whole - 1.0) / 2.0 + whole * (edges - whole)
        return float(np.diff(ladder) @ (np.diff(area) / np.diff(edges)))

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        edges, ladder = self._corners
        filled = np.flatnonzero(np.diff(ladder) > 0.0)  # nothing may come in a bin without share, however u is rounded
        u = rng.random(size)
        bins = filled[np.minimum(np.searchsorted(ladder[filled + 1], u, side="right"), len(filled) - 1)]
        within = (u - ladder[bins]) / (ladder[bins + 1] - ladder[bins])
        width = edges[bins + 1] - edges[bins]
        last = np.nextafter(edges[bins + 1], 0.0)  # X is below the end of its bin
        return discretise(np.clip(edges[bins] + np.clip(within, 0.0, 1.0) * width, edges[bins], last))

    def _cdf(self, k: Floats) -> Floats:
        edges, ladder = self._corners
        return np.interp(k + 1.0, edges, ladder)  # ⌊X⌋ <= k is X < k + 1


def _check_numbers(name: str, values: npt.ArrayLike) -> Floats:
    array = np.array(values)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "fiu":
        raise InputError(f"{name} must be a list of numbers; got shape {array.shape}, {array.dtype}", field=name)
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite; got {array[~np.isfinite(array)][0]}", field=name)
    return array
