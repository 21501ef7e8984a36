"""The flow of conversions, cell by cell: what was expected, what arrived, and the evidence of a silence.

A cell is complete once a decision of a later one is known: conversions are counted in the cell of their report, or in
that of the latest decision before it where that is later. So the flow depends on the events and not on how they were
grouped.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from latecomer.core.state import Integers
from latecomer.service.bandit.monitor.arrivals import ArrivalModel
from latecomer.service.bandit.monitor.grid import WEEK, Grid
from latecomer.service.bandit.monitor.silence import LEAST_CONVERSIONS, Silence

_PEAKS_KEPT = 8
"""Windows, but at least four weeks where the window is a time, after which a peak of the evidence is forgotten."""
REPORTS = np.dtype([("cell", "<i8"), ("round", "<i8"), ("slot", "<i4"), ("is_late", "?")])
_NUMBERS = ("cell", "first_cell", "first_stamp", "stamp", "round", "expected", "open_cells")
_NONE = np.zeros(0, np.int64)
_NEVER = 1 << 62


class CompletedCell(NamedTuple):
    """A cell, its accepted conversions, and the number of its late ones."""

    cell: int
    stamp: int
    rounds: Integers
    ages: Integers
    slots: Integers
    late: int


class Flow:
    """Decisions and conversions by cell.

    Parameters
    ----------
    grid
        The cells.
    last_round
        The last round before the first that is counted.
    """

    def __init__(self, grid: Grid, last_round: int) -> None:
        self._grid = grid
        self.arrivals, self.silence = ArrivalModel(grid.cells), Silence()
        self.cell = self.first_cell = -1
        """The cell of the latest decision, and of the first; -1 before that."""
        self.stamp = self.first_stamp = 0
        self.round, self.expected = last_round, 0.0
        """The latest decision's round, and the conversions that were expected so far."""
        self.open_cells = 0
        """Cells until no decision is open, if none is made."""
        self._reports, self._next_report = np.zeros(0, REPORTS), _NEVER
        self._peaks_kept = _PEAKS_KEPT * grid.cells
        if not grid.in_rounds:
            self._peaks_kept = max(self._peaks_kept, 4 * WEEK // grid.width)

    def add_reports(self, reports: Any) -> None:
        """Add reports of the current cell or later ones; they wait until their cells are complete."""
        found = np.concatenate([self._reports, reports])
        self._reports = found[np.argsort(found["cell"], kind="stable")]
        self._find_next_report()

    def add_decisions(self, cell: int, stamps: Integers) -> Iterator[CompletedCell]:
        """Count decisions of a cell; yield the cells that are complete by then."""
        if self.cell < 0:
            self.cell = self.first_cell = cell
            self.first_stamp = int(stamps[0])
        yield from self.advance(cell)
        self.arrivals.open[0] += len(stamps)
        self.open_cells = self._grid.cells
        self.round, self.stamp = self.round + len(stamps), int(stamps[-1])

    def advance(self, target: int) -> Iterator[CompletedCell]:
        """Complete the cells before `target`; yield each."""
        while 0 <= self.cell < target:
            yield self._complete_cell()
            self.arrivals.shift()
            self.cell += 1
            self.open_cells -= 1
            if self.open_cells < 0:  # no decision is open
                following = min(target, self._next_report)
                if following > self.cell:
                    self.arrivals.skip(following - self.cell)
                    self.cell = following

    def _complete_cell(self) -> CompletedCell:
        stamp = self.stamp if self._grid.in_rounds else self.cell * self._grid.width
        reports, late = None, 0
        if self._next_report <= self.cell:
            reports, late = self._take_reports()
        ages = None if reports is None else self.arrivals.find_ages(reports["round"], self.round)
        expected = self.arrivals.complete_cell(ages)
        self.expected += expected
        if self.silence.evidence > 0.0 or self.arrivals.conversions >= LEAST_CONVERSIONS:
            least = self._grid.threshold(self.cell - self.first_cell + 1, self.stamp - self.first_stamp)
            arrived = 0 if ages is None else len(ages)
            self.silence.add(self.cell, stamp, expected, arrived, least=least, oldest_peak=self.cell - self._peaks_kept)
        if reports is None or ages is None:
            return CompletedCell(self.cell, stamp, _NONE, _NONE, _NONE, late)
        return CompletedCell(self.cell, stamp, reports["round"], ages, reports["slot"], late)

    def _take_reports(self) -> tuple[Any, int]:
        """Return the accepted reports of the current cell, and the number of late ones."""
        count = int(np.searchsorted(self._reports["cell"], self.cell, "right"))
        reports, self._reports = self._reports[:count], self._reports[count:]
        self._find_next_report()
        accepted = reports[~reports["is_late"]]
        return accepted, count - len(accepted)

    def _find_next_report(self) -> None:
        self._next_report = int(self._reports["cell"][0]) if len(self._reports) else _NEVER

    def copy(self) -> "Flow":
        """Return a copy that can be advanced by itself."""
        return deepcopy(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the flow for a snapshot."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        reports = self._reports.tobytes()
        return numbers | {"arrivals": self.arrivals.to_dict(), "silence": self.silence.to_dict(), "reports": reports}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the flow of a snapshot."""
        for name in _NUMBERS:
            setattr(self, name, saved[name])
        self.arrivals.restore(saved["arrivals"])
        self.silence = Silence.from_dict(saved["silence"])
        self._reports = np.frombuffer(saved["reports"], REPORTS).copy()
        self._find_next_report()
