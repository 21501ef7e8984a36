"""Runs of plain decisions: one call of a kernel, and their events, ids and answers made together."""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.policies.base import bulk
from latecomer.policies.base.many_choices import ManyChoices
from latecomer.service.bandit import events
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.bandit.decision_log import log_decision
from latecomer.service.bandit.offers import ROW_TYPE, OfferWriter, pack_rows
from latecomer.service.bandit.tally.notes import make_notes
from latecomer.service.messages import DecisionAnswer

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

MANY = 8
"""Decisions from which columns pay: fewer are made one by one."""


def join_rows(calls: Sequence[DecisionCall]) -> Array:
    """Return the actions of all calls."""
    return calls[0].rows if len(calls) == 1 else np.concatenate([call.rows for call in calls])


def decide_calls(
    bandit: "Bandit",
    calls: Sequence[DecisionCall],
    rows: Array,
    controls: Sequence[int | None],
    *,
    now: int,
    expires_at: datetime | None,
) -> list[tuple[DecisionAnswer, bytes]]:
    """Decide one call after the other at one time, and note each; return the answers, and the events for the log.

    `rows` are the actions of all. None is deferred, all are admissible, and the policy has no limits.
    """
    policy, at = bandit.policy, None if bandit.in_rounds else now / 1e6
    subjects = [call.subject for call in calls]
    is_plain = not any(subjects) and controls.count(None) == len(calls) >= MANY
    if is_plain and bulk.can_decide_together(policy):
        ends = np.array(list(accumulate(len(call.rows) for call in calls)))
        choices = bulk.decide_together(policy, rows, ends, at=at)
        return _log_decisions(bandit, calls, choices, rows, ends, now=now, expires_at=expires_at)
    sets = [call.rows for call in calls]
    decisions, summaries = bulk.decide(policy, sets, at=at, controls=controls, subjects=subjects)
    return [
        log_decision(bandit, *each, now=now, expires_at=expires_at)
        for each in zip(calls, decisions, summaries, strict=True)
    ]


def _log_decisions(
    bandit: "Bandit",
    calls: Sequence[DecisionCall],
    choices: ManyChoices,
    rows: Array,
    ends: Integers,
    *,
    now: int,
    expires_at: datetime | None,
) -> list[tuple[DecisionAnswer, bytes]]:
    """Note decisions as calls of `log_decision` would, one after the other; none is for a subject, or of a ranking.

    The actions of decision i are the rows from the end of those of the one before it to ends[i].
    """
    count, first = len(calls), bandit.rounds + 1
    secret = b"" if bandit.ids.is_current else bandit.ids.renew(first)
    records = np.empty(count, events.get_layout(bandit.dim)[events.DECISION])
    records["kind"] = [events.DECISION_WITH_REQUEST if call.request else events.DECISION for call in calls]
    records["index"], records["round"], records["stamp"] = choices.indices, np.arange(first, first + count), now
    records["score"], records["summary"] = choices.scores, choices.summaries
    records["action"] = rows[np.concatenate([[0], ends[:-1]]) + choices.indices]
    packed = _cut(records.tobytes(), [records.itemsize] * count)
    offers: list[bytes] | None = None
    if bandit.offers is not None:
        offers = _pack_offers(bandit.offers, first, calls, rows, ends)
    signed, columns = choices.signed, (choices.indices.tolist(), choices.scores.tolist())
    propensities = [None if math.isnan(known) else known for known in signed.tolist()]
    made, labels = [], []
    ids = bandit.ids.ids_of(first, count)
    for place, (call, index, score, known) in enumerate(zip(calls, *columns, propensities, strict=True)):
        label, data = None, packed[place] + call.digests
        if call.ids is not None:
            label = call.ids[index]
            data += events.pack_text(events.LABEL, label.encode())
        if known is not None:
            data += events.pack_propensity(events.PROPENSITY, known)
        if call.places is not None:
            index = call.places[index]  # noqa: PLW2901
            data += events.pack_place(events.PLACE, index)
        if offers is not None:
            data += offers[place]
        labels.append(label)
        answer = DecisionAnswer(
            ids[place],
            index,
            label,
            first + place,
            score,
            expires_at,
            None if known is None else abs(known),
            known is not None and known < 0.0,
        )
        made.append((answer, data))
    made[0] = (made[0][0], secret + made[0][1])
    bandit.rounds, bandit.stamp = first + count - 1, now
    stamps = np.full(count, now)
    bandit.monitor.note_decisions(stamps, first, choices.summaries)
    contexts = {} if offers is None else {place: call.context for place, call in enumerate(calls) if call.context}
    bandit.tally.note_decisions(make_notes(stamps, signed, labels, contexts))
    return made


def _pack_offers(
    writer: OfferWriter, first: int, calls: Sequence[DecisionCall], rows: Array, ends: Integers
) -> list[bytes]:
    """Return the events of the offers of decisions from round `first` on."""
    sizes = np.diff(ends, prepend=0) * (rows.shape[1] * ROW_TYPE.itemsize)
    sets = _cut(rows.astype(ROW_TYPE).tobytes(), sizes.tolist())
    return [
        writer.pack(round_, pack_rows(call.ids, own) if call.described is None else call.pack_offer())
        for round_, (call, own) in enumerate(zip(calls, sets, strict=True), start=first)
    ]


def _cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Cut bytes into parts of these sizes."""
    ends = list(accumulate(sizes))
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
