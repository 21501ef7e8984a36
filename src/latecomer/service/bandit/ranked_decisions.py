"""Rankings of a bandit: k decisions of one request, logged one after the other, each with its position."""

import math
from typing import TYPE_CHECKING, Any

from msgspec import structs

from latecomer.errors import InputError
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.ranking_policy import check_examination
from latecomer.policies.base.search import summarise
from latecomer.service.bandit import events
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.bandit.decision_log import log_decision
from latecomer.service.messages import DecisionAnswer, RankedAction, RankingAnswer

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


def decide_ranking(
    bandit: "Bandit", call: DecisionCall, control: int | None, *, now: int, shift: int
) -> tuple[DecisionAnswer, bytes]:
    """Choose k actions and record a round for each; return the answer and the events for the log.

    The last decision has the request's digests, as the index of request ids has it. The score of a later one is its
    estimate.
    """
    if call.deferred or call.probabilities:
        raise InputError("deferred must be left out where k is given: rankings count at once", field="deferred")
    policy, search = bandit.policy, None if call.picked is None else call.picked.search
    seen, theta_hat = check_examination(call.examination, call.k), policy.theta_hat
    bandit.has_unlogged_change = True
    at = None if bandit.in_rounds else now / 1e6
    if bandit.contest is not None:
        decision = bandit.contest.rank(call, at=at)
    else:
        options: dict[str, Any] = {"at": at, "control": control, "subject": call.subject}
        options["examination"] = call.examination
        decision = (
            policy.decide(call.rows, k=call.k, **options)
            if search is None
            else policy.rank_by_search(search, call.k, **options)
        )
    indices, included = decision.indices or (decision.index,), decision.propensities or (decision.propensity,)
    data, expires_at = b"", bandit.find_expiry(now, shift)
    summary = summarise(call.rows) if search is None else search.summary
    entries: list[RankedAction] = []
    earlier = structs.replace(call, request=b"", body=b"")
    for place, (index, inclusion) in enumerate(zip(indices, included, strict=True)):
        action = call.rows[index] if search is None else search.take(index)
        each = Decision(
            decision.round + place,
            index,
            action * seen[place],
            float(action @ theta_hat) if place else decision.score,
            inclusion if place else decision.propensity,
            decision.is_control,
        )
        logged = call if place == call.k - 1 else earlier
        answer, more = log_decision(bandit, logged, each, summary, now=now, expires_at=expires_at)
        probability = math.nan if inclusion is None else inclusion
        data += more + events.pack_ranked(events.RANKED, place + 1, call.k, probability, float(seen[place]))
        entries.append(
            RankedAction(place + 1, answer.index, answer.action_id, answer.decision_id, answer.round, inclusion)
        )
        if not place:
            first = answer
    if bandit.tally.is_full:
        bandit.count_notes()
    return RankingAnswer(**structs.asdict(first), ranking=entries), data
