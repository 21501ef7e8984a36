"""Export a bandit's log: one row a decision with its offer and its fate, and a table of all reports.

The reports are read first, since a conversion comes after its decision; then the decisions are streamed.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from latecomer.core.state import Integers
from latecomer.errors import DamagedFileError
from latecomer.policies.base.decision import VERDICTS
from latecomer.service.bandit import events
from latecomer.service.bandit.decision_ids import DecisionIds, read_secrets
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.storage.rows import make_row_error, read_remaining_rows
from latecomer.service.storage.snapshots import read_newest_secrets
from latecomer.service.storage.sql import SQLConnection
from latecomer.service.tools.fates import Fates
from latecomer.service.tools.offer_table import OfferTable
from latecomer.service.tools.reader import find_descriptor, open_reader

_EVENTS_PER_TABLE, _BYTES_PER_TABLE = 500_000, 64_000_000
"""Events in a table, and bytes of the log, about."""
_WORDS = np.array([verdict.value for verdict in VERDICTS])
_TIME = pl.Datetime("us", "UTC")


def check_bandit(path: str | PathLike[str], name: str) -> None:
    """Raise `UnknownBanditError` or `FileError` where there is no such bandit to export."""
    with open_reader(path) as connection:
        find_descriptor(connection, name)


def export(path: str | PathLike[str], name: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables of a bandit, ("decisions" or "reports", frame), for one part of the log after the other.

    A decision's row has its offer, where that was logged, its place in a ranking, and its accepted conversion. Each
    position of a ranking is a row; the first has the propensity of being first, a later one has none, and all have the
    probability that they are among the positions (`inclusion`). `DamagedFileError` at a damaged row, after the tables
    of the rows before it.
    """
    with open_reader(path) as connection:
        descriptor = find_descriptor(connection, name)
        ids = DecisionIds(descriptor.skipped)
        ids.add(read_newest_secrets(connection, descriptor.number))
        fates = Fates(_read_until_damage(connection, descriptor))
        offers = OfferTable(descriptor.describe())
        given: dict[int, str] = {}
        part = _Part(descriptor, ids, given, fates, offers)
        try:
            for row in read_remaining_rows(connection, descriptor.number):
                try:
                    part.add(row.payload)
                except (ValueError, IndexError) as error:
                    raise make_row_error(row.bandit, row.seq, str(error)) from error
                if part.count >= _EVENTS_PER_TABLE or part.size >= _BYTES_PER_TABLE:
                    yield from part.make_frames()
                    part = _Part(descriptor, ids, given, fates, offers)
        except DamagedFileError:
            yield from part.make_frames()  # of the rows before the damage
            raise
        yield from part.make_frames()


def _read_until_damage(connection: SQLConnection, descriptor: BanditDescriptor) -> Iterator[events.Payload]:
    with suppress(DamagedFileError, ValueError, IndexError):  # reading the decisions meets them again, and says so
        for row in read_remaining_rows(connection, descriptor.number):
            yield events.Payload(row.payload, descriptor.spec.dim)


class _Part:
    """The events of a part of the log, collected for tables."""

    def __init__(
        self, descriptor: BanditDescriptor, ids: DecisionIds, given: dict[int, str], fates: Fates, offers: OfferTable
    ) -> None:
        self.count, self.size = 0, 0
        self._dim, self._ids, self._fates, self._offers = descriptor.spec.dim, ids, fates, offers
        self._given = given
        """By round, the ids of those that were deferred; of all parts."""
        reward = descriptor.spec.reward
        self._scale = 1.0 if isinstance(reward, str) else reward.scale
        self._decisions: list[events.Records] = []
        self._labels: dict[int, str] = {}
        self._signed: dict[int, float] = {}
        self._ranked: dict[int, tuple[int, int, int, float, float]] = {}
        self._reports: list[pl.DataFrame] = []

    def add(self, data: bytes) -> None:
        """Add the events of a row."""
        payload = events.Payload(data, self._dim)
        decided = payload.records(events.DECISION)
        if len(decided):
            self._decisions.append(decided)
            labels = payload.numbers(events.LABEL)
            texts = [payload.text(label).decode() for label in labels]
            self._labels.update(zip(self._rounds_of(payload, labels), texts, strict=True))
            given = payload.numbers(events.DEFERRED_ID)
            self._given.update(
                zip(self._rounds_of(payload, given), map(bytes.decode, payload.texts(given)), strict=True)
            )
            ranked = payload.numbers(events.RANKED)
            self._ranked.update(
                zip(self._rounds_of(payload, ranked), payload.records(events.RANKED).tolist(), strict=True)
            )
            signed = payload.numbers(events.PROPENSITY)
            values = payload.records(events.PROPENSITY)["signed"].tolist()
            self._signed.update(zip(self._rounds_of(payload, signed), values, strict=True))
            self._add_offers(payload)
        self._ids.add(read_secrets(payload))
        self._add_reports(payload)
        self.count, self.size = self.count + len(payload.kinds), self.size + len(data)

    @staticmethod
    def _rounds_of(payload: events.Payload, annotations: Integers) -> list[int]:
        """Return the rounds of the decisions that annotations come after."""
        before = np.searchsorted(payload.numbers(events.DECISION), annotations) - 1
        rounds: list[int] = payload.records(events.DECISION)["round"][before].tolist()
        return rounds

    def _add_offers(self, payload: events.Payload) -> None:
        whole, repeated = payload.numbers(events.OFFER), payload.numbers(events.REPEATED_OFFER)
        back = payload.records(events.REPEATED_OFFER)["distance"]
        distances = dict(zip(repeated.tolist(), back.tolist(), strict=True))
        numbers = np.sort(np.concatenate([whole, repeated]))
        for round_, number in zip(self._rounds_of(payload, numbers), numbers.tolist(), strict=True):
            if number in distances:
                self._offers.add_repeated(round_, distances[number])
            else:
                self._offers.add(round_, payload.text(number))

    def _add_reports(self, payload: events.Payload) -> None:
        runs = {kind: payload.records(kind) for kind in (*events.REPORTS, events.STAGE)}
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
        signed = pl.Series([self._signed.get(round_) for round_ in rounds.tolist()], dtype=pl.Float64)
        is_converted, arrivals, values, is_revoked = self._fates.find(rounds)
        frame = pl.DataFrame(
            {
                "decision_id": self._make_ids(rounds),
                "round": rounds,
                "decided_at": _make_times(column("stamp")),
                "chosen": column("index"),
                "action_id": pl.Series([self._labels.get(round_) for round_ in rounds.tolist()], dtype=pl.String),
                "score": column("score"),
                "chosen_action": pl.Series(column("action"), dtype=pl.Array(pl.Float64, self._dim)),
                **self._make_ranking(rounds, signed.abs()),
                "control": signed < 0.0,
                "converted": is_converted,
                "converted_at": _make_times(arrivals),
                "value": values * self._scale,
                "revoked": is_revoked,
            }
        )
        only_converted = [pl.when("converted").then(name).alias(name) for name in ("converted_at", "value", "revoked")]
        offers = self._offers.take(rounds.tolist())
        return frame.with_columns(*only_converted).drop("converted").hstack(offers.get_columns())

    def _make_ranking(self, rounds: Integers, propensities: pl.Series) -> dict[str, pl.Series]:
        """Return the propensity of the choice, known of a first position alone, and the columns of rankings.

        A decision by itself is the first of one, and has its propensity of being included.
        """
        alone = (events.RANKED, 1, 1, math.nan, 1.0)
        ranked = np.array([self._ranked.get(round_, alone) for round_ in rounds.tolist()], np.float64).reshape(-1, 5)
        _, positions, sizes, included, examination = ranked.T
        is_first, is_alone = pl.Series(positions == 1.0), pl.Series(sizes == 1.0)
        inclusion = pl.Series(included).fill_nan(None)
        return pl.select(
            propensity=pl.when(is_first).then(propensities),
            position=pl.Series(positions.astype(np.int64)),
            positions=pl.Series(sizes.astype(np.int64)),
            inclusion=pl.when(is_alone).then(propensities).otherwise(inclusion),
            examination=pl.Series(examination),
        ).to_dict()

    def _make_reports(self, kind: int, run: events.Records) -> pl.DataFrame:
        occurred, rounds = np.ascontiguousarray(run["occurred"]), np.ascontiguousarray(run["round"])
        converted = kind in (events.CONVERSION, events.PURCHASE, events.CORRECTION)
        has_id = kind in (events.PURCHASE, events.RETURN)
        names = [digest.hex() if any(digest) else None for digest in run["conversion"].tolist()] if has_id else None
        stages = [name.decode() for name in run["stage"].tolist()] if kind == events.STAGE else None
        values = np.full(len(run), np.nan)
        if converted:
            values = np.array(run["value"]) * (self._scale if kind == events.CONVERSION else 1.0)
        return pl.DataFrame(
            {
                "decision_id": self._make_ids(rounds),
                "round": rounds,
                "kind": [_name_kind(kind)] * len(run),
                "verdict": _WORDS[run["verdict"]],
                "reported_at": _make_times(run["stamp"]),
                "occurred_at": pl.select(
                    pl.when(pl.Series(occurred != events.NOT_GIVEN)).then(_make_times(occurred)).otherwise(None)
                ).to_series(),
                "value": values,
                "conversion": pl.Series([None] * len(run) if names is None else names, dtype=pl.String),
                "stage": pl.Series([None] * len(run) if stages is None else stages, dtype=pl.String),
            }
        ).with_columns(pl.col("value").fill_nan(None))

    def _make_ids(self, rounds: Integers) -> pl.Series:
        """Return the decisions' ids; null where a pruned log without a whole snapshot lacks the secret."""
        found = [self._given.get(round_) or self._ids.id_of(round_) or None for round_ in rounds.tolist()]
        return pl.Series(found, dtype=pl.String)


def _name_kind(kind: int) -> str:
    if kind in (events.CONVERSION, events.PURCHASE):
        return "conversion"
    return {events.STAGE: "stage", events.CORRECTION: "correction"}.get(kind, "revocation")


def _make_times(stamps: Integers) -> pl.Series:
    return pl.Series(np.ascontiguousarray(stamps), dtype=pl.Int64).cast(_TIME)
