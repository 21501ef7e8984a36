"""Decisions of two policies that share the traffic: one chooses, and the other records the round."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from latecomer.core.action_summary import Shorts
from latecomer.core.state import UNSTAMPED, Array
from latecomer.policies.base import bulk
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.deferral import DeferredDecision
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.ranking_policy import check_examination
from latecomer.policies.base.rng import Draw
from latecomer.timestamps import Moment

CHAMPION, CHALLENGER = 0, 1


class ContestedDecision(NamedTuple):
    """A decision that both policies have recorded, and the summary of its actions."""

    decision: Decision
    summary: Shorts


def decide_contested(
    policies: tuple[LinearPolicy, LinearPolicy],
    rows: Array,
    *,
    arm: int,
    share: float,
    at: Moment | None,
    deferred: bool = False,
    subject: str | None = None,
    places: Sequence[Mapping[str, int] | None] = (None, None),
) -> ContestedDecision:
    """Have the policy of an arm decide, and the other record the decision; `is_control` is True of the champion's.

    The propensity is that before the arm was drawn, (1 − f)·p + f·p′ with f the `share` of the challenger, where both
    policies know theirs; `places` has that argument of `decide` for each. Of a deferred decision the other only takes
    the random numbers that a round takes.
    """
    leader, follower = policies[arm], policies[1 - arm]
    chances = follower.probabilities(rows, at=at, places=places[1 - arm]) if knows_probabilities(follower) else None
    decision = leader.decide(rows, at=at, deferred=deferred, subject=subject, places=places[arm])
    summary = bulk.latest_summary(leader, rows)
    if deferred:
        follower.rng.draws(1, follower.dim)
    else:
        bulk.record(follower, decision.action[None], summary[None], np.array([_read_stamp(leader)]))
    propensity = None
    if chances is not None and decision.propensity is not None:
        propensity = _blend(decision.propensity, float(chances[decision.index]), arm, share)
    made = Decision(
        decision.round, decision.index, decision.action, decision.score, propensity, is_control=arm == CHAMPION
    )
    return ContestedDecision(made, summary)


def rank_contested(
    policies: tuple[LinearPolicy, LinearPolicy],
    rows: Array,
    k: int,
    *,
    arm: int,
    share: float,
    at: Moment | None,
    subject: str | None = None,
    examination: Sequence[float] | None = None,
) -> Decision:
    """Have the policy of an arm rank k actions, and the other record their rounds.

    The propensities, of the first action and of each inclusion, are those before the arm was drawn, where both policies
    know theirs.
    """
    leader, follower = policies[arm], policies[1 - arm]
    follower.check_ranking(rows, k)  # the leader must not have ranked what the other cannot
    decision = leader.decide(rows, at=at, subject=subject, k=k, examination=examination)
    indices = decision.indices or (decision.index,)
    chances = _blend_ranking(decision, follower, rows, arm=arm, share=share, at=at)
    actions = rows[list(indices)] * check_examination(examination, k)[:, None]
    bulk.record(follower, actions, np.tile(bulk.summarise(rows), (k, 1)), np.full(k, _read_stamp(leader)))
    return Decision(
        decision.round,
        decision.index,
        decision.action,
        decision.score,
        chances[0],
        arm == CHAMPION,
        indices,
        chances[1:],
    )


def _blend_ranking(
    decision: Decision, follower: LinearPolicy, rows: Array, *, arm: int, share: float, at: Moment | None
) -> tuple[float | None, ...]:
    """Return the propensities of a ranking's first action and of each inclusion; None where a policy lacks its own."""
    indices = decision.indices or (decision.index,)
    own = (decision.propensity, *(decision.propensities or [None] * len(indices)))
    if not knows_probabilities(follower) or own[0] is None:
        return (None,) * len(own)
    first, included = follower.assess_ranking(rows, indices, at=at)
    pairs = zip(own, (first, *included), strict=True)
    return tuple(None if one is None else _blend(one, other, arm, share) for one, other in pairs)


def share_tables(champion: LinearPolicy, challenger: LinearPolicy) -> None:
    """Give both the champion's tables of subjects and of deferred decisions: whoever decides, both know of it."""
    challenger.deferred, challenger.subjects = champion.deferred, champion.subjects


def record_activated(champion: LinearPolicy, challenger: LinearPolicy, entry: DeferredDecision) -> None:
    """Have the challenger record a deferred decision that the champion has just recorded."""
    bulk.record(challenger, entry.action[None], entry.summary[None], np.array([_read_stamp(champion)]))


def _read_stamp(policy: LinearPolicy) -> int:
    """Return the stamp of a policy's latest decision, as `bulk.record` takes it."""
    return UNSTAMPED if isinstance(policy.window, int) else int(policy.state.number("now"))


def _blend(own: float, other: float, arm: int, share: float) -> float:
    """Return the probability before the arm is drawn, given that by the arm's policy and that by the other."""
    weights = (1.0 - share, share)
    return weights[arm] * own + weights[1 - arm] * other


def knows_probabilities(policy: LinearPolicy) -> bool:
    """Tell whether the probabilities of a policy's next choice are exact."""
    algorithm = policy.algorithm
    return algorithm.is_randomised or algorithm.draw is Draw.NOTHING or algorithm.scores_are_probabilities
