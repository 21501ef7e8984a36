"""A bandit's log as tables: decisions and reports, for any tool that reads Parquet."""

from collections.abc import Iterator
from os import PathLike
from typing import Any

import apsw
import numpy as np
import polars as pl

from latecomer.core.state import Integers
from latecomer.errors import DamagedFileError, UnknownBanditError
from latecomer.policies.base.decision import VERDICTS
from latecomer.service.bandit import events
from latecomer.service.bandit.decision_ids import DecisionIds, secrets_of
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.storage.recovery import read_descriptors
from latecomer.service.storage.rows import connect, damaged, first_row, rows, unreadable
from latecomer.service.storage.snapshots import newest_secrets
from latecomer.validation import short_repr

_EVENTS = 500_000
"""About so many events a table."""
_WORDS = np.array([verdict.value for verdict in VERDICTS])
_TIME = pl.Datetime("us", "UTC")


def check_bandit(path: str | PathLike[str], name: str) -> None:
    """Raise `UnknownBanditError` or `FileError` where there is no such bandit to export."""
    connection = connect(path, write=False)
    try:
        _find(connection, name)
    except apsw.Error as error:
        raise unreadable(path, error) from error
    finally:
        connection.close()


def export(path: str | PathLike[str], name: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """The tables of a bandit, ("decisions" or "reports", frame), a part of the log at a time.

    `DamagedFileError` at a damaged row, after the tables of what comes before it.
    """
    connection = connect(path, write=False)
    try:
        connection.execute("BEGIN")
        descriptor = _find(connection, name)
        ids = DecisionIds(descriptor.skipped)
        ids.add(newest_secrets(connection, descriptor.number))
        part = _Part(descriptor, ids)
        first = first_row(connection, descriptor.number)
        try:
            for row in rows(connection, descriptor.number, after=first.first - 1, before=None) if first else ():
                try:
                    part.add(row.payload)
                except (ValueError, IndexError) as error:
                    raise damaged(row.bandit, row.seq, str(error)) from error
                if part.count >= _EVENTS:
                    yield from part.frames()
                    part = _Part(descriptor, ids)
        except DamagedFileError:
            yield from part.frames()  # what comes before the damage
            raise
        yield from part.frames()
    except apsw.Error as error:
        raise unreadable(path, error) from error
    finally:
        connection.close()


def _find(connection: apsw.Connection, name: str) -> BanditDescriptor:
    alive, _ = read_descriptors(connection, {})
    for descriptor in alive.values():
        if descriptor.name == name:
            return descriptor
    names = ", ".join(descriptor.name for descriptor in alive.values())
    raise UnknownBanditError(f"there is no bandit {short_repr(name)}; there are: {names}")


class _Part:
    """Events on their way into tables."""

    def __init__(self, descriptor: BanditDescriptor, ids: DecisionIds) -> None:
        self.count = 0
        self._dim, self._ids = descriptor.spec.dim, ids
        self._decisions: list[events.Records] = []
        self._labels: dict[int, str] = {}
        self._reports: list[pl.DataFrame] = []

    def add(self, payload: bytes) -> None:
        """The events of a row."""
        told = events.Payload(payload, self._dim)
        labels, decided = told.numbers(events.LABEL), told.records(events.DECISION)
        if len(decided):
            self._decisions.append(decided)
            before = np.searchsorted(told.numbers(events.DECISION), labels) - 1  # a label comes after its decision
            texts = (told.text(label).decode() for label in labels)
            self._labels.update(zip(decided["round"][before].tolist(), texts, strict=True))
        self._ids.add(secrets_of(told))
        self._add_reports(told)
        self.count += len(told.kinds)

    def _add_reports(self, told: events.Payload) -> None:
        runs = {kind: told.records(kind) for kind in (events.CONVERSION, events.REVOCATION)}
        turns = events.turns(told.kinds[np.isin(told.kinds, list(runs))])
        self._reports += [self._reported(kind, runs[kind][part]) for kind, part in turns]

    def frames(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """The tables that have rows."""
        if self._decisions:
            yield "decisions", self._decided()
        if self._reports:
            yield "reports", pl.concat(self._reports)

    def _decided(self) -> pl.DataFrame:
        def column(name: str) -> Any:
            return np.concatenate([run[name] for run in self._decisions])

        rounds = column("round")
        return pl.DataFrame(
            {
                "decision_id": self._named(rounds),
                "round": rounds,
                "decided_at": _moments(column("stamp")),
                "index": column("index"),
                "score": column("score"),
                "action": pl.Series(column("action"), dtype=pl.Array(pl.Float64, self._dim)),
                "action_id": pl.Series([self._labels.get(round_) for round_ in rounds.tolist()], dtype=pl.String),
            }
        )

    def _reported(self, kind: int, run: events.Records) -> pl.DataFrame:
        occurred, rounds = np.ascontiguousarray(run["occurred"]), np.ascontiguousarray(run["round"])
        converted = kind == events.CONVERSION
        return pl.DataFrame(
            {
                "decision_id": self._named(rounds),
                "round": rounds,
                "kind": ["conversion" if converted else "revocation"] * len(run),
                "verdict": _WORDS[run["verdict"]],
                "reported_at": _moments(run["stamp"]),
                "occurred_at": pl.select(
                    pl.when(pl.Series(occurred != events.NOT_SAID)).then(_moments(occurred)).otherwise(None)
                ).to_series(),
                "value": np.ascontiguousarray(run["value"]) if converted else np.full(len(run), np.nan),
            }
        ).with_columns(pl.col("value").fill_nan(None))

    def _named(self, rounds: Integers) -> pl.Series:
        """The decisions' ids; null where a pruned log with no whole snapshot does not tell the secret."""
        return pl.Series([self._ids.id_of(round_) or None for round_ in rounds.tolist()], dtype=pl.String)


def _moments(stamps: Integers) -> pl.Series:
    return pl.Series(np.ascontiguousarray(stamps), dtype=pl.Int64).cast(_TIME)
