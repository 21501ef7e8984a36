"""Export a bandit's log as tables of decisions and reports, for any tool that reads Parquet."""

from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from latecomer.core.state import Integers
from latecomer.errors import DamagedFileError, UnknownBanditError
from latecomer.policies.base.decision import VERDICTS
from latecomer.service.bandit import events
from latecomer.service.bandit.decision_ids import DecisionIds, read_secrets
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.storage.recovery import read_descriptors
from latecomer.service.storage.rows import make_row_error, read_remaining_rows
from latecomer.service.storage.snapshots import read_newest_secrets
from latecomer.service.storage.sql import SQLConnection
from latecomer.service.tools.reader import open_reader
from latecomer.validation import short_repr

_EVENTS_PER_TABLE = 500_000
"""Events in a table, about."""
_WORDS = np.array([verdict.value for verdict in VERDICTS])
_TIME = pl.Datetime("us", "UTC")


def check_bandit(path: str | PathLike[str], name: str) -> None:
    """Raise `UnknownBanditError` or `FileError` where there is no such bandit to export."""
    with open_reader(path) as connection:
        _find(connection, name)


def export(path: str | PathLike[str], name: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables of a bandit, ("decisions" or "reports", frame), for one part of the log after the other.

    `DamagedFileError` at a damaged row, after the tables of the rows before it.
    """
    with open_reader(path) as connection:
        descriptor = _find(connection, name)
        ids = DecisionIds(descriptor.skipped)
        ids.add(read_newest_secrets(connection, descriptor.number))
        part = _Part(descriptor, ids)
        try:
            for row in read_remaining_rows(connection, descriptor.number):
                try:
                    part.add(row.payload)
                except (ValueError, IndexError) as error:
                    raise make_row_error(row.bandit, row.seq, str(error)) from error
                if part.count >= _EVENTS_PER_TABLE:
                    yield from part.make_frames()
                    part = _Part(descriptor, ids)
        except DamagedFileError:
            yield from part.make_frames()  # of the rows before the damage
            raise
        yield from part.make_frames()


def _find(connection: SQLConnection, name: str) -> BanditDescriptor:
    alive, _ = read_descriptors(connection, {})
    for descriptor in alive.values():
        if descriptor.name == name:
            return descriptor
    names = ", ".join(descriptor.name for descriptor in alive.values())
    raise UnknownBanditError(f"there is no bandit {short_repr(name)}; there are: {names}")


class _Part:
    """The events of a part of the log, collected for tables."""

    def __init__(self, descriptor: BanditDescriptor, ids: DecisionIds) -> None:
        self.count = 0
        self._dim, self._ids = descriptor.spec.dim, ids
        self._decisions: list[events.Records] = []
        self._labels: dict[int, str] = {}
        self._reports: list[pl.DataFrame] = []

    def add(self, data: bytes) -> None:
        """Add the events of a row."""
        payload = events.Payload(data, self._dim)
        labels, decided = payload.numbers(events.LABEL), payload.records(events.DECISION)
        if len(decided):
            self._decisions.append(decided)
            before = np.searchsorted(payload.numbers(events.DECISION), labels) - 1  # a label comes after its decision
            texts = (payload.text(label).decode() for label in labels)
            self._labels.update(zip(decided["round"][before].tolist(), texts, strict=True))
        self._ids.add(read_secrets(payload))
        self._add_reports(payload)
        self.count += len(payload.kinds)

    def _add_reports(self, payload: events.Payload) -> None:
        runs = {kind: payload.records(kind) for kind in (events.CONVERSION, events.REVOCATION)}
        parts = events.split_runs(payload.kinds[np.isin(payload.kinds, list(runs))])
        self._reports += [self._make_reports(kind, runs[kind][part]) for kind, part in parts]

    def make_frames(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield the tables that have rows."""
        if self._decisions:
            yield "decisions", self._make_decisions()
        if self._reports:
            yield "reports", pl.concat(self._reports)

    def _make_decisions(self) -> pl.DataFrame:
        def column(name: str) -> Any:
            return np.concatenate([run[name] for run in self._decisions])

        rounds = column("round")
        return pl.DataFrame(
            {
                "decision_id": self._make_ids(rounds),
                "round": rounds,
                "decided_at": _make_times(column("stamp")),
                "index": column("index"),
                "score": column("score"),
                "action": pl.Series(column("action"), dtype=pl.Array(pl.Float64, self._dim)),
                "action_id": pl.Series([self._labels.get(round_) for round_ in rounds.tolist()], dtype=pl.String),
            }
        )

    def _make_reports(self, kind: int, run: events.Records) -> pl.DataFrame:
        occurred, rounds = np.ascontiguousarray(run["occurred"]), np.ascontiguousarray(run["round"])
        converted = kind == events.CONVERSION
        return pl.DataFrame(
            {
                "decision_id": self._make_ids(rounds),
                "round": rounds,
                "kind": ["conversion" if converted else "revocation"] * len(run),
                "verdict": _WORDS[run["verdict"]],
                "reported_at": _make_times(run["stamp"]),
                "occurred_at": pl.select(
                    pl.when(pl.Series(occurred != events.NOT_GIVEN)).then(_make_times(occurred)).otherwise(None)
                ).to_series(),
                "value": np.ascontiguousarray(run["value"]) if converted else np.full(len(run), np.nan),
            }
        ).with_columns(pl.col("value").fill_nan(None))

    def _make_ids(self, rounds: Integers) -> pl.Series:
        """Return the decisions' ids; null where a pruned log without a whole snapshot lacks the secret."""
        return pl.Series([self._ids.id_of(round_) or None for round_ in rounds.tolist()], dtype=pl.String)


def _make_times(stamps: Integers) -> pl.Series:
    return pl.Series(np.ascontiguousarray(stamps), dtype=pl.Int64).cast(_TIME)
