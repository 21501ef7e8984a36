"""A sample of conversions with their delays, and the tests whether the delay law drifts or depends on the action.

The sample has the conversions of decisions of the last looks. Where there are too many, decisions are left out by a
hash of their round, which has nothing to do with their delays. Delays, and the ages up to which they can have been
seen, are in cells: a conversion has been seen if and only if its delay is at most its decision's age. The tests are
those of `delays.estimation.dependence`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from latecomer.core.state import Integers
from latecomer.delays.estimation.dependence import ENOUGH_CONVERSIONS, DependenceTest, test_dependence

MOST = 2048
"""Conversions in the sample."""
LOOKS = 8
"""Decisions of so many looks are in the sample."""
_HASH = np.uint64(0x9E3779B97F4A7C15)
_DTYPE = np.dtype([("round", "<i8"), ("cell", "<i8"), ("age", "<i4"), ("slot", "<i4")])


class DelaySample:
    """Conversions: the round, the cell of its decision, its delay in cells, and the slot of its action id."""

    def __init__(self) -> None:
        self._rows = np.zeros(0, _DTYPE)
        self._level = 0
        """One decision in 2^level is in the sample."""

    def add(self, rounds: Integers, cells: Integers, ages: Integers, slots: Integers) -> None:
        """Add conversions, as far as their decisions are in the sample."""
        rows = np.zeros(len(rounds), _DTYPE)
        rows["round"], rows["cell"], rows["age"], rows["slot"] = rounds, cells, ages, slots
        self._rows = np.concatenate([self._rows, self._select(rows)])
        while len(self._rows) > MOST:
            self._level += 1
            self._rows = self._select(self._rows)

    def _select(self, rows: Any) -> Any:
        hashes = (rows["round"].astype(np.uint64) * _HASH) >> np.uint64(32)
        return rows[hashes < np.uint64(1 << (32 - self._level))]

    def forget(self, cell: int) -> None:
        """Drop the conversions of decisions before a cell."""
        self._rows = self._rows[self._rows["cell"] >= cell]

    def test_drift(self, cell: int, window: int) -> DependenceTest | None:
        """Test whether delays depend on when the decision was made; None where there are too few."""
        if len(self._rows) < ENOUGH_CONVERSIONS:
            return None
        return test_dependence(self._rows["age"], self._find_limits(cell, window), self._rows["cell"])

    def test_actions(self, cell: int, window: int, names: Sequence[str]) -> DependenceTest | None:
        """Test whether delays depend on the action id; `names` has an id for each slot."""
        if len(self._rows) < ENOUGH_CONVERSIONS or len(np.unique(self._rows["slot"])) < 2:
            return None
        labels = np.array(names, dtype=np.str_)[self._rows["slot"]]
        return test_dependence(self._rows["age"], self._find_limits(cell, window), labels)

    def _find_limits(self, cell: int, window: int) -> Integers:
        limits: Integers = np.minimum(cell - self._rows["cell"], window)
        return limits

    def to_dict(self) -> dict[str, Any]:
        """Return the sample for a snapshot."""
        return {"rows": self._rows.tobytes(), "level": self._level}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the sample of a snapshot."""
        self._rows, self._level = np.frombuffer(saved["rows"], _DTYPE).copy(), saved["level"]
