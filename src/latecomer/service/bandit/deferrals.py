"""Deferred decisions of a bandit: made and activated live, and applied from the log to the same bits.

A deferred decision's event has its whole answer, which waits in the policy's table (`policies.base.deferral`). Its
activation is logged before the decision that it becomes.
"""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.errors import ConflictError
from latecomer.policies.base.decision import VERDICTS, Decision, Verdict
from latecomer.policies.base.deferral import ActivatedDecision, DeferredDecision
from latecomer.service.bandit import events
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.bandit.decision_log import pack_request, rank_answer
from latecomer.service.bandit.idempotency import check_same_body, digest_request
from latecomer.service.bandit.offers import read_context
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.messages import Activation, DecisionAnswer, EventActivation

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

PREFIX = "w"
"""Begins the id of a deferred decision, where that of another begins with a hexadecimal digit."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DeferredChoice(Struct, frozen=True, array_like=True):
    """A deferred decision as the log has it; `signed` is its propensity, negative where the control chose."""

    id: str
    number: int
    stamp: int
    index: int
    score: float
    action: bytes
    summary: bytes
    label: str | None
    signed: float | None
    offer: bytes | None
    request: bytes
    body: bytes
    subject: bytes
    place: int | None = None
    """The choice's place in the request, where some actions were left out."""
    probabilities: list[float] | None = None


class Deferrals:
    """The deferred decisions of one bandit, found by their ids and by the digests of their request ids."""

    def __init__(self, bandit: "Bandit") -> None:
        self._bandit, self._table = bandit, bandit.policy.deferred
        self._requests = self._read_requests()

    def _read_requests(self) -> dict[bytes, int]:
        """Return the numbers by request id; an id that was used again stands for the latest decision."""
        found = sorted((read_choice(note) for note in self._table.notes), key=attrgetter("number"))
        return {choice.request: choice.number for choice in found if choice.request}

    def _index(self, choice: DeferredChoice) -> None:
        if choice.request:
            self._requests[choice.request] = choice.number
        if len(self._requests) > 2 * self._table.note_count + 64:
            self._requests = self._read_requests()

    # ---- live ----

    def decide(self, call: DecisionCall, control: int | None, *, now: int, shift: int) -> tuple[DecisionAnswer, bytes]:
        """Choose, and let the choice wait for its activation; return the answer and the events for the log."""
        known = self._find_request(call.deferred_request, now)
        if known is not None:
            check_same_body(str(call.request_id), call.body, known.body)
            return self._make_answer(known, shift), events.NOTHING
        bandit = self._bandit
        bandit.has_unlogged_change = True
        at = None if bandit.in_rounds else now / 1e6
        probabilities = bandit.find_probabilities(call, control, at)
        decision, _ = bandit.choose(call, at=at, control=control)
        choice = self._describe(call, decision, now, probabilities)
        text = msgspec.msgpack.encode(choice)
        entry = self._table.find(choice.number)
        if entry is None:
            raise AssertionError("a decision that has just been deferred is not in the table")
        entry.note, entry.key = text, choice.id.encode()
        self._index(choice)
        bandit.stamp = now
        return self._make_answer(choice, shift), events.pack_text(events.DEFERRED, text)

    def _describe(
        self, call: DecisionCall, decision: Decision, now: int, probabilities: list[float] | None
    ) -> DeferredChoice:
        entry = self._table.find(-decision.round)
        signed = decision.propensity
        if signed is not None and decision.is_control:
            signed = -signed
        log_offers = self._bandit.descriptor.spec.log_offers
        return DeferredChoice(
            id=f"{PREFIX}{-decision.round:x}-{secrets.token_hex(12)}",
            number=-decision.round,
            stamp=now,
            index=decision.index,
            score=decision.score,
            action=decision.packed_action,
            summary=b"" if entry is None else entry.summary.tobytes(),
            label=None if call.ids is None else call.ids[decision.index],
            signed=signed,
            offer=call.pack_offer() if log_offers else None,
            request=call.deferred_request,
            body=call.body,
            subject=b"" if entry is None else entry.subject,
            place=None if call.places is None else call.find_place(decision.index),
            probabilities=probabilities,
        )

    def _make_answer(self, choice: DeferredChoice, shift: int) -> DecisionAnswer:
        expires_at, signed = None, choice.signed
        if not self._bandit.in_rounds:
            expires_at = _EPOCH + timedelta(microseconds=choice.stamp + self._table.timeout - shift)
        answer = DecisionAnswer(
            choice.id,
            choice.index if choice.place is None else choice.place,
            choice.label,
            -choice.number,
            choice.score,
            expires_at,
            None if signed is None else abs(signed),
            signed is not None and signed < 0.0,
        )
        return rank_answer(answer, choice.probabilities)

    def activate(self, activations: Sequence[Activation | EventActivation], *, now: int) -> tuple[VerdictList, bytes]:
        """Record decisions that were shown; return the verdicts and the events for the log."""
        answers, data = VerdictList(), b""
        for activation in activations:
            verdict, more = self._activate_one(self._find_id(activation, now), now)
            answers.append(verdict)
            data += more
        return answers, data

    def _find_id(self, activation: Activation | EventActivation, now: int) -> str:
        if isinstance(activation, Activation):
            return activation.decision_id
        choice = self._find_request(digest_request(activation.request_id), now)
        return "" if choice is None else choice.id

    def _activate_one(self, decision_id: str, now: int) -> tuple[Verdict, bytes]:
        """Activate one decision; its number alone tells that it has expired, for then its id is forgotten."""
        bandit, number = self._bandit, _read_number(decision_id)
        entry = self._table.find(number)
        known = entry or self._table.find_activated(number)
        if not 0 < number < self._table.next_number or (known is not None and not _has_id(known, decision_id)):
            return Verdict.DUPLICATE if bandit.ids.find_round(decision_id) else Verdict.UNKNOWN, b""
        bandit.has_unlogged_change = True
        verdict = bandit.policy.activate(-number, at=None if bandit.in_rounds else now / 1e6)
        data = events.pack_activation(events.ACTIVATION, VERDICTS.index(verdict), number, now)
        bandit.stamp = now
        if entry is not None and verdict is Verdict.ACCEPTED:
            if bandit.contest is not None:
                bandit.contest.record_activated(entry)
            data += self._log_activated(read_choice(entry.note), bandit.policy.rounds, now)
        return verdict, data

    def _log_activated(self, choice: DeferredChoice, round: int, now: int) -> bytes:
        """Return the events of a deferred decision that has become a round."""
        bandit = self._bandit
        secret = b"" if bandit.ids.is_current else bandit.ids.renew(round)
        decision = events.pack_decision(events.DECISION, choice.index, round, now, choice.score)
        data = secret + decision + choice.action + choice.summary
        data += events.pack_text(events.DEFERRED_ID, choice.id.encode())
        if choice.label is not None:
            data += events.pack_text(events.LABEL, choice.label.encode())
        if choice.signed is not None:
            data += events.pack_propensity(events.PROPENSITY, choice.signed)
        if choice.subject:
            data += bytes([events.SUBJECT]) + choice.subject
        data += pack_request(choice.place, choice.probabilities)
        context = None
        if bandit.offers is not None and choice.offer is not None:
            data += bandit.offers.pack(round, choice.offer)
            context = read_context(choice.offer)
        bandit.rounds = round
        bandit.monitor.note_decision(now, round, np.frombuffer(choice.summary, np.int16))
        bandit.tally.note_decision(now, choice.signed, choice.label, context)
        if bandit.tally.is_full:
            bandit.count_notes()
        return data

    # ---- searches ----

    def find_round(self, decision_id: str) -> int:
        """Return the round of a deferred decision; 0 where it is not active, or is not known."""
        shown = self._table.find_activated(_read_number(decision_id))
        return shown.round if shown is not None and _has_id(shown, decision_id) else 0

    def id_of(self, round: int) -> str:
        """Return the id that the client has of a round's decision: where it was deferred, that of its choice."""
        shown = self._table.find_by_round(round)
        return self._bandit.ids.id_of(round) if shown is None else shown.key.decode()

    def explain_absence(self, decision_id: str) -> str:
        """Say why there is no round of a deferred decision's id."""
        number = _read_number(decision_id)
        entry = self._table.find(number)
        if entry is not None and _has_id(entry, decision_id):
            return "it waits for its activation, and counts from then on"
        is_known = entry is not None or self._table.find_activated(number) is not None
        if not is_known and 0 < number < self._table.next_number:
            return "it was not activated in time, or so long ago that its id is forgotten"
        return "this bandit has not given it"

    def _find_request(self, request: bytes, now: int) -> DeferredChoice | None:
        """Return the deferred decision of a request id, for as long as that is remembered."""
        if request not in self._requests:
            return None
        note = self._bandit.policy.find_note(self._requests[request], now)
        return read_choice(note) if note else None

    def check_free(self, request_id: str | None, request: bytes, now: int) -> None:
        """Raise `ConflictError` where a deferred decision has used a request id."""
        if self._find_request(request, now) is not None:
            raise ConflictError(f"request_id {request_id!r} was used with another body: a new request needs a new id")

    # ---- from the log ----

    def apply_choice(self, text: bytes) -> None:
        """Take the random numbers of a logged choice, and let it wait; `ValueError` where it is none."""
        bandit, policy = self._bandit, self._bandit.policy
        choice, dim = read_choice(text), bandit.dim
        if len(choice.action) != 8 * dim or len(choice.summary) != 2 * (dim + 2):
            raise ValueError("it has a deferred decision of another dimension")
        for each in bandit.policies:
            each.rng.draws(1, dim)
        moment = policy.rounds + 1 if bandit.in_rounds else choice.stamp
        policy.drop_expired(moment)
        action: Array = np.frombuffer(choice.action, np.float64)
        summary = np.frombuffer(choice.summary, np.int16)
        entry = DeferredDecision(choice.number, moment, choice.index, choice.score, action, summary, note=text)
        entry.subject, entry.key = choice.subject, choice.id.encode()
        self._table.add(entry)
        self._index(choice)

    def apply_activation(self, number: int, verdict: int, stamp: int) -> None:
        """Apply a logged activation; where it was accepted, the next round is the decision that it became."""
        policy = self._bandit.policy
        moment = policy.rounds + 1 if self._bandit.in_rounds else stamp
        policy.drop_expired(moment)
        entry = self._table.find(number)
        if entry is not None and VERDICTS[verdict] is Verdict.ACCEPTED:
            policy.note_activation(entry, policy.rounds + 1, stamp)


def _read_number(decision_id: str) -> int:
    """Return the number in the id of a deferred decision; 0 where it is none."""
    digits = decision_id[len(PREFIX) :].partition("-")[0]
    is_one = decision_id.startswith(PREFIX) and decision_id.isascii() and digits.isalnum() and len(digits) <= 15
    try:
        return int(digits, 16) if is_one else 0
    except ValueError:
        return 0


def _has_id(entry: DeferredDecision | ActivatedDecision, decision_id: str) -> bool:
    return secrets.compare_digest(entry.key, decision_id.encode())


def read_choice(text: bytes) -> DeferredChoice:
    """Read a deferred decision as the log has it; `ValueError` where it is none."""
    return msgspec.msgpack.decode(text, type=DeferredChoice)
