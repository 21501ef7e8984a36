"""Counts of the decisions of a range of time, from the log: a tally of its own, made without the policy.

The log has every verdict, so the events alone give the counts. A conversion counts whenever it came, if its decision is
in the range.
"""

import numpy as np

from latecomer.core.state import Integers
from latecomer.errors import InputError
from latecomer.policies.base.decision import VERDICTS
from latecomer.service.bandit import events
from latecomer.service.bandit.apply import collect_notes
from latecomer.service.bandit.bandit_view import BanditView
from latecomer.service.bandit.logged_choices import LoggedRow, RowsFrom
from latecomer.service.bandit.report import Range
from latecomer.service.bandit.tally.tally import Tally


def count_range(view: BanditView, rows_from: RowsFrom, *, since: int | None, until: int | None) -> Range:
    """Count the decisions from `since` on and before `until`, in the store's microseconds."""
    if since is not None and until is not None and since >= until:
        raise InputError("from must be before to: the range has no time in it", field="from")
    counter = _RangeCounter(view, since, until)
    for row in rows_from(view.number, 1):
        counter.add(row)
    return counter.finish()


class _RangeCounter:
    def __init__(self, view: BanditView, since: int | None, until: int | None) -> None:
        self._view, self._since, self._until = view, since, until
        self._tally: Tally | None = None
        self._end = 0
        """The round after the last that is in the range."""
        self._verdicts = {kind: np.zeros(len(VERDICTS), np.int64) for kind in events.REPORTS}

    def add(self, row: LoggedRow) -> None:
        """Count a row."""
        if self._since is not None and self._tally is None and row.stamp < self._since:
            return
        payload = events.Payload(row.payload, self._view.info.dim)
        self._add_decisions(payload)
        if self._tally is not None:
            self._add_reports(self._tally, payload)
            self._tally.count_notes(self._tally.first_round)

    def _add_decisions(self, payload: events.Payload) -> None:
        records = payload.records(events.DECISION)
        stamps: Integers = np.array(records["stamp"])
        inside = np.ones(len(stamps), np.bool_)
        if self._since is not None:
            inside &= stamps >= self._since
        if self._until is not None:
            inside &= stamps < self._until
        places = np.flatnonzero(inside)
        if not len(places):
            return
        if self._tally is None:
            self._tally = Tally(int(records["round"][places[0]]))
        self._tally.note_decisions(collect_notes(payload, stamps).cut(int(places[0]), int(places[-1]) + 1))
        self._end = int(records["round"][places[-1]]) + 1

    def _add_reports(self, tally: Tally, payload: events.Payload) -> None:
        """Count reports, run by run: the order of those that change credits matters."""
        kinds = payload.kinds[np.isin(payload.kinds, events.REPORTS)]
        records = {kind: payload.records(kind) for kind in self._verdicts}
        for kind, part in events.split_runs(kinds):
            reports = records[kind][part]
            reports = reports[(reports["round"] >= tally.first_round) & (reports["round"] < self._end)]
            rounds, verdicts = np.array(reports["round"]), reports["verdict"].astype(np.int64)
            self._verdicts[kind] += np.bincount(verdicts, minlength=len(VERDICTS))
            stamps = np.array(reports["stamp"])
            if kind == events.CONVERSION:
                tally.note_conversions(rounds, np.array(reports["value"]), verdicts, stamps)
            elif kind == events.REVOCATION:
                tally.note_revocations(rounds, verdicts, stamps)
            else:
                notes = {events.PURCHASE: tally.note_purchases, events.RETURN: tally.note_returns}
                note = notes.get(kind, tally.note_corrections)
                note(rounds, np.array(reports["credit"]), verdicts, stamps)

    def finish(self) -> Range:
        """Close the rounds that the policy has closed."""
        tally = self._tally or Tally(self._view.rounds + 1)
        tally.count_notes(self._view.oldest)
        words = [verdict.value for verdict in VERDICTS]
        pairs = ((events.CONVERSION, events.PURCHASE), (events.REVOCATION, events.RETURN))
        sums = (self._verdicts[plain] + self._verdicts[other] for plain, other in pairs)
        converted, revoked = (dict(zip(words, counts.tolist(), strict=True)) for counts in sums)
        return Range(self._since, self._until, tally, converted, revoked)
