"""Apply logged events to a bandit: the state is the same, to the last bit, as after the live calls.

The events of each kind become arrays first; the policy then gets them run by run, in their order.
"""

import numpy as np

from latecomer.core.conversions import UNKNOWN
from latecomer.core.state import Integers
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.catalogue import read_change
from latecomer.service.bandit.credit_changes import CHANGES
from latecomer.service.bandit.decision_ids import read_secrets
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.freezing import apply_freeze
from latecomer.service.bandit.offers import read_contexts
from latecomer.service.bandit.report_appliers import (
    Conversions,
    Corrections,
    Purchases,
    Returns,
    Revocations,
    Stages,
    copy_column,
)
from latecomer.service.bandit.tally.notes import Notes


def apply_payload(bandit: Bandit, data: bytes, stamp: int) -> Payload:
    """Apply events of the bandit's own log; `ValueError` where they do not follow from its state."""
    payload = apply_foreign_payload(bandit, data, stamp)
    if payload.to_bytes() != data:
        raise ValueError("its reports get other verdicts when they are replayed")
    return payload


def apply_foreign_payload(bandit: Bandit, data: bytes, stamp: int) -> Payload:
    """Apply events of this bandit's log or of another's; return them with the verdicts that this bandit gives.

    Parameters
    ----------
    bandit
        The bandit that changes.
    data, stamp
        The events, and the latest stamp of their rows.
    """
    payload = Payload(data, bandit.dim)
    if any(uid.tobytes().hex() != bandit.descriptor.uid for uid in payload.records(events.BEGUN)["uid"]):
        raise ValueError("it begins another bandit")
    _check_secrets(payload, bandit.rounds)
    bandit.ids.add(read_secrets(payload))
    kinds = _KINDS[payload.kinds]
    present = {int(_KINDS[kind]) for kind in payload.present}
    appliers = {kind: applier(bandit, payload) for kind, applier in _APPLIERS.items() if kind in present}
    in_order = not present.isdisjoint(CHANGES)
    for kind, part in events.split_runs(kinds[kinds != _NOTHING]):
        if kind in appliers:
            appliers[kind].apply(part)
            if in_order:
                appliers[kind].note(part)
    for applier in appliers.values():
        if not in_order:
            applier.note(slice(None))
        applier.finish(payload)
    unknown = payload.records(events.UNKNOWN)
    bandit.counters.conversions[UNKNOWN] += int(unknown["conversions"].sum())
    bandit.counters.revocations[UNKNOWN] += int(unknown["revocations"].sum())
    bandit.stamp = max(bandit.stamp, stamp)
    if bandit.tally.is_full:
        bandit.count_notes()
    return payload


def _check_secrets(payload: Payload, rounds: int) -> None:
    """Check that an id secret stands before the decision of the round that it begins with."""
    numbers = payload.numbers(events.SECRET)
    if len(numbers):
        following = rounds + 1 + np.searchsorted(payload.numbers(events.DECISION), numbers)
        if not np.array_equal(payload.records(events.SECRET, numbers)["round"], following):
            raise ValueError("it has an id secret that begins with another round than the next")


class _Decisions:
    """Decisions with and without a request id: the policy does not distinguish them."""

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        self._bandit = bandit
        records = payload.records(events.DECISION)
        if not np.array_equal(records["round"], np.arange(bandit.rounds + 1, bandit.rounds + 1 + len(records))):
            raise ValueError(f"its decisions do not follow round {bandit.rounds}")
        self._actions, self._stamps = copy_column(records["action"]), copy_column(records["stamp"])
        self._summaries = np.ascontiguousarray(records["summary"])

    def apply(self, part: slice) -> None:
        self._bandit.apply_decisions(self._actions[part], self._summaries[part], self._stamps[part])

    def note(self, part: slice) -> None:
        """Do nothing: decisions are noted all at once, before reports."""

    def finish(self, payload: Payload) -> None:
        self._bandit.monitor.note_decisions(self._stamps, self._bandit.rounds + 1, self._summaries)
        self._note_subjects(payload)
        self._bandit.rounds += len(self._stamps)
        self._bandit.tally.note_decisions(collect_notes(payload, self._stamps))

    def _note_subjects(self, payload: Payload) -> None:
        """Note whom the decisions are for."""
        numbers = payload.numbers(events.SUBJECT)
        rounds = self._bandit.rounds + np.searchsorted(payload.numbers(events.DECISION), numbers)
        policy = self._bandit.policy
        kept = int(policy.state.number("kept"))
        for digest, round_ in zip(payload.records(events.SUBJECT)["digest"].tolist(), rounds.tolist(), strict=True):
            policy.subjects.add(bytes(digest), round_, kept)


class _Deferred:
    """Decisions that wait for their activation."""

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        self._bandit, self._texts = bandit, [payload.text(number) for number in payload.numbers(events.DEFERRED)]

    def apply(self, part: slice) -> None:
        for text in self._texts[part]:
            self._bandit.deferrals.apply_choice(text)

    def note(self, part: slice) -> None:
        """Do nothing: a deferred decision is not counted."""

    def finish(self, payload: Payload) -> None:
        """Do nothing."""


class _Activations:
    """Activations; the decision that an accepted one becomes follows it."""

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        self._bandit, self._records = bandit, payload.records(events.ACTIVATION)

    def apply(self, part: slice) -> None:
        for record in self._records[part]:
            self._bandit.deferrals.apply_activation(int(record["number"]), int(record["verdict"]), int(record["stamp"]))

    def note(self, part: slice) -> None:
        """Do nothing: the decisions are counted."""

    def finish(self, payload: Payload) -> None:
        """Do nothing."""


class _Catalogue:
    """Changes of the catalogue; what was decided does not depend on them."""

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        self._bandit, self._texts = bandit, [payload.text(number) for number in payload.numbers(events.CATALOGUE)]

    def apply(self, part: slice) -> None:
        for text in self._texts[part]:
            self._bandit.catalogue.apply(read_change(text))

    def note(self, part: slice) -> None:
        """Do nothing: a change is not counted."""

    def finish(self, payload: Payload) -> None:
        """Do nothing."""


class _Freezes:
    """The beginnings and ends of a time in which the bandit decides without learning."""

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        self._bandit, self._frozen = bandit, payload.records(events.FREEZE)["frozen"].tolist()

    def apply(self, part: slice) -> None:
        for frozen in self._frozen[part]:
            apply_freeze(self._bandit, is_frozen=bool(frozen))

    def note(self, part: slice) -> None:
        """Do nothing: a freeze is not counted."""

    def finish(self, payload: Payload) -> None:
        """Do nothing."""


_Reports = Conversions | Revocations | Purchases | Returns | Corrections | Stages
_Applier = _Decisions | _Reports | _Deferred | _Activations | _Catalogue | _Freezes
_APPLIERS: dict[int, type[_Applier]] = {
    events.DECISION: _Decisions,
    events.CONVERSION: Conversions,
    events.REVOCATION: Revocations,
    events.PURCHASE: Purchases,
    events.RETURN: Returns,
    events.CORRECTION: Corrections,
    events.STAGE: Stages,
    events.DEFERRED: _Deferred,
    events.ACTIVATION: _Activations,
    events.CATALOGUE: _Catalogue,
    events.FREEZE: _Freezes,
}

_NOTHING = 0
_KINDS = np.arange(256, dtype=np.uint8)
"""By kind, the kind whose applier takes the event; `_NOTHING` for annotations."""
_KINDS[[*events.ANNOTATIONS]] = _NOTHING
_KINDS[events.DECISION_WITH_REQUEST] = events.DECISION


def collect_notes(payload: Payload, stamps: Integers) -> Notes:
    """Return the decisions of a payload as the tally takes them, with the annotations that follow each."""
    decisions = payload.numbers(events.DECISION)
    signed, codes = np.full(len(decisions), np.nan), np.zeros(len(decisions), np.int64)
    numbers = payload.numbers(events.PROPENSITY)
    signed[np.searchsorted(decisions, numbers) - 1] = payload.records(events.PROPENSITY)["signed"]
    numbers = payload.numbers(events.LABEL)
    seen: dict[bytes, int] = {}
    codes[np.searchsorted(decisions, numbers) - 1] = [
        seen.setdefault(label, len(seen) + 1) for label in payload.texts(numbers)
    ]
    return Notes(stamps, signed, codes, [None, *map(bytes.decode, seen)], read_contexts(payload))
