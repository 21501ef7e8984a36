"""Expected arrivals: how many conversions the open decisions should bring in a cell, by their ages.

For each age in cells, r_j = A_j / E_j is the share of decisions that convert at that age: A_j conversions have arrived
at age j, and E_j decisions have been through it. That is the conversion rate times the density of delays, without a
correction for truncation, since a decision counts only at ages that it has reached. The cell's expected arrivals are
Σ_j r_j n_j, with n_j decisions of age j. What is added to both sums weighs twice as much every four windows, so that
they forget.
"""

from typing import Any

import numpy as np

from latecomer.core.state import Array, Integers

HALF_LIFE = 4
"""Windows."""
_ARRAYS = ("open", "arrived", "exposed")
_NOTHING = 1e-300
"""E_j before any decision has come to age j: then r_j is 0/1e-300 = 0."""
_MOST_WEIGHT = 1e12


class ArrivalModel:
    """Decisions by age, and what arrived at each age; the age is in cells, from 0 to the window's."""

    def __init__(self, cells: int) -> None:
        self.open = np.zeros(cells + 1)
        """Decisions by age: `open[0]` are those of the current cell."""
        self.arrived, self.exposed = np.zeros(cells + 1), np.full(cells + 1, _NOTHING)
        """A_j and E_j, times `weight`."""
        self.weight = 1.0
        self._growth = 2.0 ** (1.0 / (HALF_LIFE * cells))
        self._rates = np.zeros(cells + 1)

    @property
    def conversions(self) -> float:
        """The conversions that the rates rest on, the earlier ones in part."""
        return float(self.arrived.sum() / self.weight)

    def find_ages(self, rounds: Integers, last_round: int) -> Integers:
        """Return the ages of rounds; `last_round` is the last of the current cell. Older ones have the last age."""
        behind = np.cumsum(self.open)
        ages = np.searchsorted(behind, (last_round - rounds).astype(np.float64), "right")
        return np.minimum(ages, len(self.open) - 1)

    def rates(self) -> Array:
        """Return r_j; 0 where no decision has been. The array is used again."""
        np.divide(self.arrived, self.exposed, out=self._rates)
        return self._rates

    def complete_cell(self, ages: Integers | None) -> float:
        """Count the current cell's arrivals by their ages, if any; return how many were expected before."""
        expected = float(self.rates().dot(self.open))
        self.exposed += self.weight * self.open
        if ages is not None:
            self.arrived += self.weight * np.bincount(ages, minlength=len(self.arrived))
        return expected

    def shift(self) -> None:
        """Go to the next cell: everything is one cell older."""
        self.open[1:] = self.open[:-1]
        self.open[0] = 0.0
        self._grow(self._growth)

    def skip(self, cells: int) -> None:
        """Go on by cells in which no decision is open."""
        self._grow(self._growth ** min(cells, 40 * HALF_LIFE * len(self.open)))

    def _grow(self, factor: float) -> None:
        self.weight *= factor
        if self.weight > _MOST_WEIGHT:
            self.arrived /= self.weight
            self.exposed = np.maximum(self.exposed / self.weight, _NOTHING)
            self.weight = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the sums for a snapshot."""
        return {"weight": self.weight} | {name: getattr(self, name).tobytes() for name in _ARRAYS}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the sums of a snapshot."""
        self.weight = saved["weight"]
        for name in _ARRAYS:
            setattr(self, name, np.frombuffer(saved[name], np.float64).copy())
