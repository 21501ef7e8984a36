"""Decisions read back from the log, with their offers and their fates."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
from msgspec import Struct

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import Array
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit_view import BanditView
from latecomer.service.bandit.credit_changes import read_credit_changes
from latecomer.service.bandit.offers import Offer, unpack_offer
from latecomer.service.bandit.reports import compute_arrivals
from latecomer.service.decision_report import DecisionReport, Fate
from latecomer.timestamps import to_datetime


class LoggedRow(Protocol):
    """A row of the log, as far as it is read here."""

    @property
    def rounds(self) -> int:
        """The number of the bandit's rounds after this row."""

    @property
    def stamp(self) -> int:
        """The stamp of the row's latest event."""

    @property
    def payload(self) -> bytes:
        """The row's events."""


RowsFrom = Callable[[int, int], Iterator[LoggedRow]]
"""Yields a bandit's rows, given its number, from the one that has a round on; the store's lock is not needed."""


class LoggedChoice(Struct):
    """A decision of the log. `offer` is None where it was not logged, or has been pruned."""

    round: int
    stamp: int
    index: int
    score: float
    action: Array
    label: str | None = None
    signed: float | None = None
    offer: Offer | None = None
    arrival: int | None = None
    value: float = 0.0
    is_revoked: bool = False
    deferred_id: str = ""
    """The id that the decision got when it was deferred."""

    def report(self, view: BanditView) -> DecisionReport:
        """Return the decision for people."""
        fate: Fate = "open" if self.round >= view.oldest else "closed"
        if self.arrival is not None:
            fate = "revoked" if self.is_revoked else "converted"
        return DecisionReport(
            decision_id=self.deferred_id or view.ids.id_of(self.round),
            round=self.round,
            decided_at=to_datetime(self.stamp - view.shift),
            index=self.index,
            action_id=self.label,
            score=self.score,
            propensity=None if self.signed is None else abs(self.signed),
            is_control=self.signed is not None and self.signed < 0.0,
            fate=fate,
            value=None if self.arrival is None else self.value,
            converted_at=None if self.arrival is None else to_datetime(self.arrival - view.shift),
        )


def read_choices(view: BanditView, rows_from: RowsFrom, first: int, last: int) -> list[LoggedChoice]:
    """Return the decisions from round `first` to `last` that the log still has, with fates as of its end."""
    found: dict[int, LoggedChoice] = {}
    repeated: dict[int, int] = {}
    for row in rows_from(view.number, first):
        payload = events.Payload(row.payload, view.info.dim)
        for choice, distance in _read_payload(payload, first, last):
            found[choice.round] = choice
            if distance:
                repeated[choice.round] = choice.round - distance
        _add_fates(found, payload)
        if found and row.rounds > last and _have_closed(view, found[max(found)], payload):
            break
    missing = {source for source in repeated.values() if source not in found}
    sources = {**found, **{choice.round: choice for choice in _read_each(view, rows_from, sorted(missing))}}
    for round_, source in repeated.items():
        if source in sources:
            found[round_].offer = sources[source].offer
    return [found[round_] for round_ in sorted(found)]


def _have_closed(view: BanditView, latest: LoggedChoice, payload: events.Payload) -> bool:
    """Tell whether a decision of this row has ended the latest one's grace: no later report can be accepted."""
    decided = payload.records(events.DECISION)
    if not len(decided):
        return False
    age = decided["round"][-1] - latest.round if view.in_rounds else decided["stamp"].max() - latest.stamp
    return bool(age > view.kept_span)


def _read_each(view: BanditView, rows_from: RowsFrom, rounds: Iterable[int]) -> Iterator[LoggedChoice]:
    """Read decisions that others refer to, each by itself: there are few."""
    for round_ in rounds:
        for row in rows_from(view.number, round_):
            payload = events.Payload(row.payload, view.info.dim)
            yield from (choice for choice, _ in _read_payload(payload, round_, round_))
            break


def _read_payload(payload: events.Payload, first: int, last: int) -> Iterator[tuple[LoggedChoice, int]]:
    """Yield the decisions of some rounds, each with the distance of its offer, 0 where that is its own or missing."""
    numbers = payload.numbers(events.DECISION)
    records = payload.records(events.DECISION)
    for place in np.flatnonzero((records["round"] >= first) & (records["round"] <= last)).tolist():
        record, distance = records[place], 0
        choice = LoggedChoice(
            round=int(record["round"]),
            stamp=int(record["stamp"]),
            index=int(record["index"]),
            score=float(record["score"]),
            action=np.array(record["action"]),
        )
        end = int(numbers[place + 1]) if place + 1 < len(numbers) else len(payload.kinds)
        for number in range(int(numbers[place]) + 1, end):
            kind = int(payload.kinds[number])
            if kind == events.LABEL:
                choice.label = payload.text(number).decode()
            elif kind == events.PROPENSITY:
                choice.signed = float(payload.records(kind, np.array([number]))["signed"][0])
            elif kind == events.DEFERRED_ID:
                choice.deferred_id = payload.text(number).decode()
            elif kind == events.OFFER:
                choice.offer = unpack_offer(payload.text(number))
            elif kind == events.REPEATED_OFFER:
                distance = int(payload.records(kind, np.array([number]))["distance"][0])
            elif kind not in events.ANNOTATIONS:
                break
        yield choice, distance


def _add_fates(found: dict[int, LoggedChoice], payload: events.Payload) -> None:
    converted = payload.records(events.CONVERSION)
    converted = converted[converted["verdict"] == ACCEPTED]
    arrivals = compute_arrivals(converted["occurred"], converted["stamp"]).tolist()
    rounds, values = converted["round"].tolist(), converted["value"].tolist()
    for round_, arrival, value in zip(rounds, arrivals, values, strict=True):
        if round_ in found:
            found[round_].arrival, found[round_].value = arrival, value
    revoked = payload.records(events.REVOCATION)
    for round_ in revoked["round"][revoked["verdict"] == ACCEPTED].tolist():
        if round_ in found:
            found[round_].is_revoked = True
    for change in read_credit_changes(payload):
        if (choice := found.get(change.round)) is not None:
            choice.arrival = change.arrival if choice.arrival is None else choice.arrival
            choice.is_revoked = change.credit < 0.0
            choice.value = choice.value if choice.is_revoked else change.credit
