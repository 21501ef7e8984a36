"""The monitor of a bandit: everything that its alarms rest on, live and in a replay alike.

It is a function of the events: a restart, a replay and a replica come to the same numbers. A decision only notes its
time; notes are counted in groups, with arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.core.action_summary import Shorts
from latecomer.core.conversions import ACCEPTED, LATE
from latecomer.core.state import Integers
from latecomer.delays.estimation.dependence import DependenceTest
from latecomer.service.bandit.monitor.delay_sample import LOOKS, DelaySample
from latecomer.service.bandit.monitor.feature_ranges import EVERY, FeatureRanges
from latecomer.service.bandit.monitor.flow import REPORTS, CompletedCell, Flow
from latecomer.service.bandit.monitor.grid import Grid, split_by_cell
from latecomer.service.bandit.monitor.silence import Silence
from latecomer.service.bandit.monitor.window_tests import judge_late_reports, judge_window_end

REJECTED_BELOW = 0.001
"""A look finds something where p is below this; there are seven looks a week at most."""


class Finding(Struct, frozen=True):
    """A test that rejected, at its latest look: since when, its p-value, and what goes into the sentence."""

    since: int
    p_value: float
    share: float = 0.0
    named: str = ""
    conversions: int = 0


class Monitor:
    """Statistics of the events from round `last_round + 1` on.

    Parameters
    ----------
    grid
        The cells of the window.
    dim
        The dimension of actions.
    last_round
        The last round before the first that is counted.
    """

    def __init__(self, grid: Grid, dim: int, last_round: int) -> None:
        self._grid = grid
        self.flow, self.sample, self.ranges = Flow(grid, last_round), DelaySample(), FeatureRanges(dim)
        self.findings: dict[str, Finding] = {}
        """Tests that rejected at the latest look, by the alarm's id."""
        self._last_look = -1
        self._late = self._accepted = 0
        self._stamps: list[int] = []
        self._sets: list[tuple[int, bytes]] = []
        self._reports: list[tuple[Integers, Integers, Integers, Integers]] = []
        self._ahead: Flow | None = None

    # ---- notes ----

    def note_decision(self, stamp: int, round: int, summary: Shorts) -> None:
        """Note the next round; the summary of its set is kept for one in `EVERY` rounds."""
        self._stamps.append(stamp)
        if not round % EVERY:
            self._sets.append((round, summary.tobytes()))

    def note_decisions(self, stamps: Integers, first: int, summaries: Shorts) -> None:
        """Note the next rounds, from `first` on."""
        self._stamps += stamps.tolist()
        for place in range(-first % EVERY, len(stamps), EVERY):
            self._sets.append((first + place, summaries[place].tobytes()))

    def note_reports(self, rounds: Integers, verdicts: Integers, stamps: int | Integers, made: int | Integers) -> None:
        """Note reports of conversions: their verdicts, when they came, and how many rounds there were by then."""
        count = len(rounds)
        self._reports.append((rounds, verdicts, np.broadcast_to(stamps, count), np.broadcast_to(made, count)))

    # ---- statistics ----

    def count_notes(self, find_slots: Callable[[Integers], Integers], names: Sequence[str]) -> None:
        """Count what was noted. `find_slots` finds the slots of rounds, and `names` has an action id for each slot."""
        stamps, self._stamps = np.array(self._stamps, np.int64), []
        reports, self._reports = self._reports, []
        if not len(stamps) and not reports:
            return
        self._ahead = None
        first = self.flow.round + 1
        rounds = np.arange(first, first + len(stamps))
        cells = np.maximum(self._grid.find(rounds if self._grid.in_rounds else stamps), max(self.flow.cell, 0))
        np.maximum.accumulate(cells, out=cells)
        if reports:
            columns = [np.concatenate(column) for column in zip(*reports, strict=True)]
            self.flow.add_reports(self._place_reports(columns, find_slots(columns[0]), first, cells))
        self._add_sets(first, stamps)
        for cell, part in split_by_cell(cells):
            for completed in self.flow.add_decisions(cell, stamps[part]):
                self._take(completed, names)

    def _place_reports(self, columns: list[Integers], slots: Integers, first: int, cells: Integers) -> Any:
        """Return the reports with their cells; duplicates and unknown ones are left out."""
        rounds, verdicts, stamps, made = columns
        found = np.zeros(len(rounds), REPORTS)
        latest = np.concatenate([[max(self.flow.cell, 0)], cells])[np.maximum(made - first + 1, 0)]
        own = latest if self._grid.in_rounds else self._grid.find(stamps)
        found["cell"], found["round"] = np.maximum(own, latest), rounds
        found["is_late"] = verdicts == LATE
        found["slot"] = np.where(found["is_late"], 0, slots)  # nobody asks; a snapshot has forgotten closed rounds
        return found[(verdicts == ACCEPTED) | (verdicts == LATE)]

    def _add_sets(self, first: int, stamps: Integers) -> None:
        sets, self._sets = self._sets, []
        for round_, summary in sets:
            self.ranges.add(summary, int(stamps[round_ - first]))

    def _take(self, completed: CompletedCell, names: Sequence[str]) -> None:
        if self._last_look < 0:
            self._last_look = self.flow.first_cell
        self._late += completed.late
        if len(completed.rounds):
            self._accepted += len(completed.rounds)
            cells = completed.cell - completed.ages
            self.sample.add(completed.rounds, cells, completed.ages, completed.slots)
        if completed.cell - self._last_look >= self._grid.look:
            self._look(completed, names)

    def _look(self, completed: CompletedCell, names: Sequence[str]) -> None:
        """Run the tests that are run once in a while."""
        cell, window = completed.cell, self._grid.cells
        self.sample.forget(cell - LOOKS * self._grid.look)
        found = {
            "delays_drift": _describe(self.sample.test_drift(cell, window), of_actions=False),
            "delays_differ_by_action": _describe(self.sample.test_actions(cell, window, names), of_actions=True),
            "window_too_short": _describe_shares(
                judge_window_end(self.flow.arrivals), judge_late_reports(self._late, self._accepted)
            ),
        }
        self._last_look, self._late, self._accepted = cell, 0, 0
        earlier, self.findings = self.findings, {}
        for id_, finding in found.items():
            if finding is not None and finding.p_value < REJECTED_BELOW:
                since = earlier[id_].since if id_ in earlier else completed.stamp
                self.findings[id_] = msgspec.structs.replace(finding, since=since)

    def look_ahead(self, now: int) -> Silence:
        """Return the evidence of a silence as of `now`, the store's time; the monitor does not change."""
        if self._ahead is None:
            self._ahead = self.flow.copy()
        if not self._grid.in_rounds:
            for _ in self._ahead.advance(int(now // self._grid.width)):
                pass
        return self._ahead.silence

    def to_dict(self) -> dict[str, Any]:
        """Return the monitor for a snapshot; what was noted must have been added."""
        return {
            "flow": self.flow.to_dict(),
            "sample": self.sample.to_dict(),
            "ranges": self.ranges.to_dict(),
            "findings": {id_: msgspec.structs.asdict(finding) for id_, finding in self.findings.items()},
            "looks": [self._last_look, self._late, self._accepted],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the monitor of a snapshot."""
        self.flow.restore(saved["flow"])
        self.sample.restore(saved["sample"])
        self.ranges.restore(saved["ranges"])
        self.findings = {id_: Finding(**finding) for id_, finding in saved["findings"].items()}
        self._last_look, self._late, self._accepted = saved["looks"]


def _describe(test: DependenceTest | None, *, of_actions: bool) -> Finding | None:
    if test is None:
        return None
    place = int(np.argmax(test.effect)) if len(test.effect) else 0
    named = test.names[place] if of_actions else "later" if test.effect[0] > 0.0 else "earlier"
    return Finding(0, test.p_value, named=named, conversions=test.conversions)


def _describe_shares(at_end: tuple[float, float] | None, late: tuple[float, float] | None) -> Finding | None:
    found = [
        Finding(0, p_value, share=share, named=named)
        for named, result in (("late", late), ("end", at_end))
        if result is not None
        for share, p_value in [result]
    ]
    if not found:
        return None
    least = min(found, key=lambda finding: finding.p_value)
    return msgspec.structs.replace(least, p_value=min(2.0 * least.p_value, 1.0))  # Bonferroni: two tests, one alarm
