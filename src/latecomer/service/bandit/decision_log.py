"""A decision that a bandit has just made: its events for the log, and its answer, then and from the log."""

from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from latecomer.core.action_summary import Shorts
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.subjects import digest_subject
from latecomer.service.bandit import events
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.messages import DecisionAnswer, RankedAction, RankedAnswer, RankingAnswer

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


def log_decision(
    bandit: "Bandit",
    call: DecisionCall,
    decision: Decision,
    summary: Shorts,
    *,
    now: int,
    expires_at: datetime | None,
    probabilities: list[float] | None = None,
) -> tuple[DecisionAnswer, bytes]:
    """Note a decision that the policy has just made; return the answer and the events for the log."""
    ids, digests = call.ids, call.digests
    index, round_, score = decision.index, decision.round, decision.score
    kind = events.DECISION_WITH_REQUEST if digests else events.DECISION
    chosen = decision.packed_action + summary.tobytes()
    secret = b"" if bandit.ids.is_current else bandit.ids.renew(round_)
    data = secret + events.pack_decision(kind, index, round_, now, score) + chosen + digests
    label, signed, propensity = None, None, decision.propensity
    if ids is not None:
        label = ids[index]
        data += events.pack_text(events.LABEL, label.encode())
    if propensity is not None:
        signed = -propensity if decision.is_control else propensity
        data += events.pack_propensity(events.PROPENSITY, signed)
    if call.subject is not None:
        data += bytes([events.SUBJECT]) + digest_subject(call.subject)
    data += pack_request(None if call.places is None else call.find_place(index), probabilities)
    context = None
    if bandit.offers is not None:
        data += bandit.offers.pack(round_, call.pack_offer())
        context = call.context
    bandit.rounds, bandit.stamp = round_, now
    bandit.monitor.note_decision(now, round_, summary)
    bandit.tally.note_decision(now, signed, label, context)
    id_, index = bandit.ids.id_of(round_), call.find_place(index)
    answer = DecisionAnswer(id_, index, label, round_, score, expires_at, propensity, decision.is_control)
    return rank_answer(answer, probabilities), data


def pack_request(place: int | None, probabilities: list[float] | None) -> bytes:
    """Return the events of what only the request knows: the choice's place in it, and all probabilities."""
    data = b"" if place is None else events.pack_place(events.PLACE, place)
    if probabilities is not None:
        data += events.pack_text(events.PROBABILITIES, np.array(probabilities, "<f8").tobytes())
    return data


def rank_answer(answer: DecisionAnswer, probabilities: list[float] | None) -> DecisionAnswer:
    """Return an answer with the probabilities of all actions, where there are any."""
    if probabilities is None:
        return answer
    known = {name: getattr(answer, name) for name in DecisionAnswer.__struct_fields__}
    return RankedAnswer(**known, probabilities=probabilities)


def repeat_answer(bandit: "Bandit", known: LoggedDecision, *, shift: int) -> DecisionAnswer:
    """Return the answer that a logged decision got."""
    answer = DecisionAnswer(
        bandit.ids.id_of(known.round),
        known.index,
        known.label,
        known.round,
        known.score,
        bandit.find_expiry(known.stamp, shift),
        known.propensity,
        known.is_control,
    )
    if known.ranking:
        ranking = [
            RankedAction(
                place + 1,
                each.place,
                each.label,
                bandit.ids.id_of(known.round + place),
                known.round + place,
                each.included,
            )
            for place, each in enumerate(known.ranking)
        ]
        return RankingAnswer(**structs.asdict(answer), ranking=ranking)
    return rank_answer(answer, known.probabilities)
