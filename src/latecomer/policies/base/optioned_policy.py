"""Decisions with options: deferred, for a subject, of a ranking, by an oracle, with limits or a control by its id."""

from collections.abc import Mapping, Sequence

import numpy.typing as npt

from latecomer.core.state import UNSTAMPED
from latecomer.policies.base.action_validation import check_actions
from latecomer.policies.base.choice_probabilities import NO_CONTROL
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.learning_policy import LearningPolicy
from latecomer.policies.base.search import Oracle
from latecomer.policies.base.subjects import digest_subject
from latecomer.timestamps import Moment


class OptionedPolicy(LearningPolicy):
    """A policy that takes the options of a decision, which `LinearPolicy.decide` describes.

    They are apart from the plain decision, which looks at none of them.
    """

    def _decide_with_options(
        self,
        actions: npt.ArrayLike | None,
        at: Moment | None,
        *,
        control: int | None = None,
        places: Mapping[str, int] | None = None,
        deferred: bool = False,
        subject: str | None = None,
        oracle: Oracle | None = None,
        k: int = 1,
        examination: Sequence[float] | None = None,
    ) -> Decision:
        if k != 1 or examination is not None:
            options = {"at": at, "control": control, "subject": subject, "examination": examination}
            return self._decide_ranking(actions, k, oracle, deferred, options)
        if oracle is not None:
            options = {"at": at, "control": control, "deferred": deferred, "subject": subject}
            return self._decide_by_oracle(oracle, actions, options)
        actions = check_actions(actions, self._dim)
        with self._placed_limits(places, len(actions)):
            if deferred:
                is_unstamped = at is None and self._in_rounds
                stamp = UNSTAMPED if is_unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
                return self._defer(actions, stamp, control, subject)
            if subject is not None:
                return self._decide_for(digest_subject(subject), actions, at, control, places)
            if control is None:
                return self.decide(actions, at=at)
            self.state.record["control_index"] = self._randomisation.check_index(control, len(actions))
            try:
                return self.decide(actions, at=at)
            finally:
                self.state.record["control_index"] = NO_CONTROL
