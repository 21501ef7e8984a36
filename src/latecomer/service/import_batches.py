"""The batches of an import, made of a log in the order of time; the same log gives the same batches again."""

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.policies.base.decision import VERDICTS
from latecomer.policies.base.learning import (
    Conversions,
    LearnableLog,
    LoggedDecisions,
    pair_conversions,
    slice_decisions,
)
from latecomer.service.messages import ImportAnswer, ImportBatch, ImportedConversions
from latecomer.validation import check_positive

DECISIONS_AT_ONCE = 500
"""Decisions in a batch: few enough that a server which must apply them as plain Python still answers others."""
_BYTES_AT_ONCE = 1_200_000
"""Bytes of a batch as JSON, about: a server takes two million."""


class ImportReport(Struct, frozen=True, kw_only=True):
    """The outcome of an import: decisions, how many of them were there before, and conversions by their verdicts."""

    first_round: int
    decisions: int
    known: int
    conversions: dict[str, int]


def count_rows_at_once(dim: int) -> int:
    """Return the number of decisions in a batch, by d alone, so that a resumed import has the same batches."""
    return max(1, min(DECISIONS_AT_ONCE, _BYTES_AT_ONCE // (28 * dim + 60)))


def check_log(log: LearnableLog, dim: int, *, encoder: Any = None, scale: float = 1.0) -> None:
    """Read a log once, so that a mistake anywhere in it is found before anything is imported."""
    for _ in log.logged_decisions(dim, encoder=encoder, scale=check_positive("scale", scale)):
        pass


def make_import_id(log: Any, *, encoder: Any = None, scale: float = 1.0) -> str:
    """Return an id for a log by what it holds and how it is read, so that importing it again counts nothing twice."""
    made = None if encoder is None else encoder.to_dict()
    facts = (log.decisions, log.conversions, log.first, log.last, log.until, log.items, float(scale), made)
    return blake2b(msgspec.msgpack.encode(facts), digest_size=12).hexdigest()


def make_import_batches(
    log: LearnableLog,
    dim: int,
    *,
    import_id: str,
    encoder: Any = None,
    scale: float = 1.0,
    rows: int | None = None,
) -> Iterator[ImportBatch]:
    """Yield the batches of a log, once all of it has been checked.

    Conversions come with the batch in whose time they arrive.
    """
    check_log(log, dim, encoder=encoder, scale=scale)
    rows = count_rows_at_once(dim) if rows is None else rows
    held: tuple[LoggedDecisions, Conversions] | None = None
    after = 0
    parts = _split(log.logged_decisions(dim, encoder=encoder, scale=scale), rows)
    for decisions, conversions in pair_conversions(parts, rounds=0, latest=None):
        if held is not None and len(decisions.stamps):
            yield _make_batch(*held, import_id=import_id, after=after)
            after += len(held[0].stamps)
        if len(decisions.stamps):
            held = decisions, conversions
        elif held is not None:  # conversions after the last decision go with it
            held = held[0], Conversions._make(map(np.concatenate, zip(held[1], conversions, strict=True)))
    if held is not None:
        yield _make_batch(*held, import_id=import_id, after=after)


def _split(batches: Iterable[LoggedDecisions], rows: int) -> Iterator[LoggedDecisions]:
    for batch in batches:
        for begin in range(0, len(batch.stamps), rows):
            yield slice_decisions(batch, begin, begin + rows)


def _make_batch(decisions: LoggedDecisions, conversions: Conversions, *, import_id: str, after: int) -> ImportBatch:
    return ImportBatch(
        import_id=import_id,
        after=after,
        decided_at=(decisions.stamps / 1e6).tolist(),
        actions=decisions.actions.tolist(),
        summaries=decisions.summaries.tolist(),
        conversions=ImportedConversions(
            conversions.rounds.tolist(), (conversions.stamps / 1e6).tolist(), conversions.values.tolist()
        ),
    )


class ImportRun:
    """An import under way: it numbers the batches, and adds up the answers."""

    def __init__(self) -> None:
        self._first_round: int | None = None
        self._decisions = self._known = 0
        self._verdicts = dict.fromkeys((verdict.value for verdict in VERDICTS), 0)

    def prepare(self, batch: ImportBatch) -> ImportBatch:
        """Return a batch with the round of the import's first decision, once that is known."""
        return msgspec.structs.replace(batch, first_round=self._first_round)

    def add(self, answer: ImportAnswer) -> None:
        """Add an answer."""
        self._first_round = answer.first_round
        if answer.verdicts is None:
            self._known += answer.imported - self._decisions
        for verdict, count in (answer.verdicts or {}).items():
            self._verdicts[verdict] += count
        self._decisions = answer.imported

    def finish(self) -> ImportReport:
        """Return the outcome."""
        return ImportReport(
            first_round=self._first_round or 0,
            decisions=self._decisions,
            known=self._known,
            conversions=self._verdicts,
        )


def run_import(
    send: Callable[[ImportBatch], ImportAnswer], batches: Iterable[ImportBatch], advance: Callable[[int], None]
) -> ImportReport:
    """Send batches one after the other; `advance` is told how many decisions each had."""
    run = ImportRun()
    for batch in batches:
        run.add(send(run.prepare(batch)))
        advance(len(batch.decided_at))
    return run.finish()
