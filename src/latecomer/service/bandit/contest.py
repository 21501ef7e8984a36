"""Champion and challenger of a bandit: two policies that learn from one log, of which one makes each decision.

The log has who decided as the sign of the propensity: the champion is the control of the comparison. The propensity is
that before the arm was drawn. The arm of a round follows from the bandit's seed and the number of the round, so that
replicas need not agree on it.
"""

from hashlib import blake2b
from typing import TYPE_CHECKING

from latecomer.core.action_summary import Shorts
from latecomer.core.state import Array
from latecomer.evaluation.arm_comparison import ArmComparison
from latecomer.evaluation.contested_decisions import (
    CHALLENGER,
    CHAMPION,
    decide_contested,
    rank_contested,
    record_activated,
    share_tables,
)
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.policy import LinearPolicy
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.bandit.lift import CONTEST, compare_closed
from latecomer.service.bandit.tally.tally import Tally

if TYPE_CHECKING:
    from latecomer.policies.base.deferral import DeferredDecision


class Contest:
    """The challenger of a bandit beside its policy. They share the tables of subjects and of deferred decisions."""

    def __init__(self, descriptor: BanditDescriptor, champion: LinearPolicy, challenger: LinearPolicy) -> None:
        if descriptor.spec.challenger is None:
            raise AssertionError("a contest needs a challenger")
        self.share = descriptor.spec.challenger.share
        self.champion, self.challenger = champion, challenger
        share_tables(champion, challenger)
        self._seed = descriptor.seed.to_bytes(8, "little")

    def draw_arm(self, number: int) -> int:
        """Return who makes a decision: the round's number, negative for a deferred decision's."""
        digest = blake2b(number.to_bytes(8, "little", signed=True), key=self._seed, digest_size=8).digest()
        return CHALLENGER if int.from_bytes(digest, "little") < self.share * 2.0**64 else CHAMPION

    def choose(self, call: DecisionCall, *, at: float | None) -> tuple[Decision, Shorts]:
        """Have one of the policies decide, and the other record it; return the decision and the actions' summary."""
        number = -self.champion.deferred.next_number if call.deferred else self.champion.rounds + 1
        policies = self.champion, self.challenger
        return decide_contested(
            policies,
            call.rows,
            arm=self.draw_arm(number),
            share=self.share,
            at=at,
            deferred=call.deferred,
            subject=call.subject,
            places=[call.find_places(policy.limited_ids) for policy in policies],
        )

    def rank(self, call: DecisionCall, *, at: float | None) -> Decision:
        """Have one of the policies rank, and the other record the rounds."""
        return rank_contested(
            (self.champion, self.challenger),
            call.rows,
            call.k,
            arm=self.draw_arm(self.champion.rounds + 1),
            share=self.share,
            at=at,
            subject=call.subject,
            examination=call.examination,
        )

    def find_probabilities(self, call: DecisionCall, *, at: float | None) -> Array:
        """Return the probabilities of the next decision, before its arm is drawn."""
        own, other = (
            policy.probabilities(call.rows, at=at, places=call.find_places(policy.limited_ids))
            for policy in (self.champion, self.challenger)
        )
        blended: Array = (1.0 - self.share) * own + self.share * other
        return blended

    def record_activated(self, entry: "DeferredDecision") -> None:
        """Have the challenger record a deferred decision that the champion has just recorded."""
        record_activated(self.champion, self.challenger, entry)

    def compare(self, tally: Tally) -> ArmComparison:
        """Compare the challenger with the champion over closed decisions."""
        return compare_closed(tally.closed[:2], CONTEST)
