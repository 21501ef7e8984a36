"""Imports: decisions that others made, applied to a bandit and logged as its own, batch by batch.

A batch is one row of the log. Its last decision carries the digest of the import's id and the batch's place, so that a
batch that is sent again is found, as a repeated decision is.
"""

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.core.action_summary import Shorts
from latecomer.core.state import Array, Integers
from latecomer.errors import ConflictError, InputError, LatecomerError
from latecomer.policies.base.action_validation import check_actions, explain_inadmissible
from latecomer.policies.base.decision import VERDICTS
from latecomer.policies.base.learning import (
    NEVER,
    Conversions,
    LoggedDecisions,
    interleave,
    slice_decisions,
    summarise_sets,
)
from latecomer.policies.base.policy_code import is_admissible
from latecomer.service.bandit import events
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.messages import MAX_ID_LENGTH, MAX_IMPORTED, ImportAnswer, ImportBatch
from latecomer.validation import check_text

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


class ImportCall(Struct, frozen=True):
    """A checked batch. `conversions` have the ordinals of their decisions in place of rounds."""

    batch: ImportBatch
    decisions: LoggedDecisions
    conversions: Conversions
    request: bytes
    body: bytes

    @property
    def lookup(self) -> bytes:
        """The digest of the import's id and the batch's place."""
        return self.request

    def repeat(self, bandit: "Bandit", known: LoggedDecision, *, shift: int) -> ImportAnswer:  # noqa: ARG002
        """Return the answer for a batch that the log has; `ConflictError` where that was another batch."""
        self.check_same_body(known.body)
        return self._make_answer(known.round, None)

    def check_same_body(self, body: bytes) -> None:
        """Raise `ConflictError` where the import's id was used with another batch at this place."""
        if body != self.body:
            raise ConflictError(
                f"import_id {self.batch.import_id!r} was used for another log, or with another scale or encoder: give "
                "this import an id of its own, and a bandit that has made no later decisions"
            )

    def run(self, bandit: "Bandit", *, now: int, shift: int) -> tuple[ImportAnswer, bytes, int]:
        """Apply the batch; return the answer, the events for the log, and how many they are."""
        from latecomer.service.bandit.apply import apply_foreign_payload  # noqa: PLC0415 - it imports the bandit

        base = bandit.rounds - self.batch.after
        self._check_place(bandit, base)
        decisions = self.decisions._replace(stamps=self.decisions.stamps + shift)
        own = self.conversions
        conversions = own._replace(stamps=own.stamps + shift, rounds=own.rounds + base)
        _check_times(bandit, decisions.stamps, conversions, now)
        secret = b"" if bandit.ids.is_current else bandit.ids.renew(bandit.rounds + 1)
        data = secret + self._pack(bandit.rounds + 1, bandit.dim, decisions, conversions)
        bandit.has_unlogged_change = True
        try:
            payload = apply_foreign_payload(bandit, data, now)
        except LatecomerError as error:  # after the checks, so that a part of it may have been applied
            raise RuntimeError(f"a batch of an import failed half-way: {error}") from error
        verdicts = np.bincount(payload.records(events.CONVERSION)["verdict"], minlength=len(VERDICTS))
        counts = {verdict.value: int(count) for verdict, count in zip(VERDICTS, verdicts, strict=True)}
        return self._make_answer(bandit.rounds, counts), payload.to_bytes(), len(decisions.stamps) + int(verdicts.sum())

    def _make_answer(self, last_round: int, verdicts: dict[str, int] | None) -> ImportAnswer:
        imported = self.batch.after + len(self.decisions.stamps)
        return ImportAnswer(first_round=last_round - imported + 1, imported=imported, verdicts=verdicts)

    def _check_place(self, bandit: "Bandit", base: int) -> None:
        given = self.batch.first_round
        if base < 0 or (given is not None and given != base + 1):
            raise ConflictError(
                f"{bandit.info.name!r} has {bandit.rounds} rounds, and this batch follows {self.batch.after} decisions "
                f"from round {given} on: send the batches of an import in their order, and decide when it is done"
            )

    def _pack(self, first: int, dim: int, decisions: LoggedDecisions, conversions: Conversions) -> bytes:
        """Return the events in the order of time; the last decision has the digests."""
        parts, done, count = [], 0, len(decisions.stamps)
        for event in interleave(decisions, conversions):
            if isinstance(event, Conversions):
                parts.append(_pack_conversions(event))
                continue
            size = len(event.stamps)
            is_last = done + size == count
            parts.append(_pack_decisions(slice_decisions(event, 0, size - is_last), first + done, dim))
            if is_last:
                last = slice_decisions(event, size - 1, size)
                parts.append(_pack_decisions(last, first + count - 1, dim, digests=self.request + self.body))
            done += size
        return b"".join(parts)


def _pack_decisions(decisions: LoggedDecisions, first: int, dim: int, digests: bytes = b"") -> bytes:
    kind = events.DECISION_WITH_REQUEST if digests else events.DECISION
    records = np.zeros(len(decisions.stamps), events.get_layout(dim)[kind])
    records["kind"], records["round"] = kind, first + np.arange(len(records))
    records["stamp"], records["action"] = decisions.stamps, decisions.actions
    records["summary"] = decisions.summaries
    if digests:
        records["request"] = np.void(digests[: events.DIGEST])
        records["body"] = np.void(digests[events.DIGEST :])
    return records.tobytes()


def _pack_conversions(conversions: Conversions) -> bytes:
    records = np.zeros(len(conversions.rounds), events.CONVERSIONS)
    records["kind"], records["occurred"] = events.CONVERSION, events.NOT_GIVEN
    records["round"], records["stamp"], records["value"] = conversions.rounds, conversions.stamps, conversions.values
    return records.tobytes()


def _check_times(bandit: "Bandit", stamps: Integers, conversions: Conversions, now: int) -> None:
    latest = max(int(stamps[-1]), *conversions.stamps.tolist()) if len(conversions.stamps) else int(stamps[-1])
    if latest > now:
        raise InputError(
            f"times must not lie in the future; got one {(latest - now) / 1e6:,.0f} s ahead: they are seconds since "
            "1970, not milliseconds",
            field="decided_at" if stamps[-1] > now else "conversions",
        )
    if not bandit.in_rounds and bandit.rounds and stamps[0] < bandit.policy.latest_stamp:
        raise ConflictError(
            f"{bandit.info.name!r} has decided {(bandit.policy.latest_stamp - int(stamps[0])) / 1e6:,.0f} s after this "
            "batch: import a log before the decisions that follow it, into a bandit of its own"
        )


def check_import_call(dim: int, batch: ImportBatch) -> ImportCall:
    """Return a batch whose columns fit together; `InputError` where they do not."""
    import_id = check_text("import_id", batch.import_id, most=MAX_ID_LENGTH)
    batch = msgspec.structs.replace(batch, import_id=import_id)
    count, found = len(batch.decided_at), batch.conversions
    _check(1 <= count <= MAX_IMPORTED, f"decided_at must have 1 to {MAX_IMPORTED} times; got {count}", "decided_at")
    _check(len(batch.actions) == count, f"actions must be one for each of {count} decisions", "actions")
    _check(batch.after >= 0, f"after must be at least 0; got {batch.after}", "after")
    _check(
        batch.after == 0 or batch.first_round is not None,
        "first_round must be given after the first batch: its answer has it",
        "first_round",
    )
    lengths = {len(found.decisions), len(found.converted_at), len(found.values)}
    rule = f"conversions must have as many decisions, times and values, at most {MAX_IMPORTED}"
    _check(len(lengths) == 1 and max(lengths) <= MAX_IMPORTED, rule, "conversions")
    actions = check_actions(batch.actions, dim)
    if not is_admissible.call(actions, dim):
        raise explain_inadmissible(actions)
    stamps = _to_stamps(batch.decided_at, "decided_at")
    _check(bool((np.diff(stamps) >= 0).all()), "decided_at must be in the order of time", "decided_at")
    ordinals, values = np.array(found.decisions, np.int64), np.array(found.values, np.float64)
    last = batch.after + count
    known = (ordinals >= 1) & (ordinals <= last)
    _check(bool(known.all()), f"conversions must be of decisions 1 to {last}", "conversions")
    _check(bool(((values >= 0.0) & (values <= 1.0)).all()), "values of conversions must be in [0, 1]", "conversions")
    arrivals = _to_stamps(found.converted_at, "conversions")
    order = np.argsort(arrivals, kind="stable")
    place = f"{batch.after} {batch.import_id}".encode("utf-8", "surrogatepass")
    body = msgspec.msgpack.encode(msgspec.structs.replace(batch, first_round=None))
    return ImportCall(
        batch,
        LoggedDecisions(actions, _check_summaries(batch, actions), stamps, np.full(count, NEVER), np.zeros(count)),
        Conversions(ordinals[order], values[order], arrivals[order]),
        blake2b(place, digest_size=events.DIGEST, person=b"import").digest(),
        blake2b(body, digest_size=events.BODY).digest(),
    )


def _check(holds: bool, rule: str, field: str) -> None:
    if not holds:
        raise InputError(rule, field=field)


def _to_stamps(seconds: list[float], field: str) -> Integers:
    times = np.array(seconds, np.float64)
    fits = (times >= 0.0) & (times <= 1e11)
    _check(bool(fits.all()), f"{field} must be seconds since 1970, not milliseconds", field)
    return np.rint(times * 1e6).astype(np.int64)


def _check_summaries(batch: ImportBatch, actions: Array) -> Shorts:
    if batch.summaries is None:
        return summarise_sets(actions, np.arange(len(actions) + 1))
    shape = (len(actions), actions.shape[1] + 2)
    is_right = len(batch.summaries) == shape[0] and all(len(row) == shape[1] for row in batch.summaries)
    _check(is_right, f"summaries must be {shape[0]} rows of {shape[1]} numbers", "summaries")
    summaries = np.array(batch.summaries, np.int64)
    return summaries.astype(np.int16)
