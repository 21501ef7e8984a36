"""Deferred decisions of a policy: made, activated, and found by the reports of them."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.state import UNSTAMPED
from latecomer.policies.base.action_validation import check_actions, explain_inadmissible
from latecomer.policies.base.decision import Decision, Verdict, round_of
from latecomer.policies.base.deferral import DeferredDecision, DeferredTable
from latecomer.policies.base.policy_code import summarise
from latecomer.policies.base.readings import PolicyReadings
from latecomer.policies.base.subjects import Attribution, SubjectTable, digest_subject
from latecomer.timestamps import Moment


class DeferringPolicy(PolicyReadings):
    """A policy whose decisions may wait for an activation before they count."""

    deferred: DeferredTable
    subjects: SubjectTable
    attribution: Attribution
    decide: Callable[..., Decision]
    _takes_draws: bool
    _is_randomised: bool
    _in_rounds: bool
    _propensity: float | None
    correctable: int
    """The time after its window in which a credit can be corrected: the grace, or the time for returns."""

    def _decide_for(
        self,
        digest: bytes,
        actions: npt.NDArray[Any],
        at: Moment | None,
        control: int | None,
        places: Mapping[str, int] | None,
    ) -> Decision:
        """Decide, and note whom the decision is for."""
        decision = self.decide(actions, at=at, control=control, places=places)
        self.subjects.add(digest, decision.round, int(self.state.number("kept")))
        return decision

    def _defer(
        self, actions: npt.NDArray[Any], stamp: int, control: int | None, subject: str | None = None
    ) -> Decision:
        """Choose, and keep the choice in the table; only the generator and the table change."""
        state, digest = self.state, b"" if subject is None else digest_subject(subject)
        if not state.is_admissible(actions):
            actions = check_actions(actions, self._dim)
            if not state.is_admissible(actions):
                raise explain_inadmissible(actions)
        record = state.record.copy()
        if control is not None:
            record["control_index"] = self._randomisation.check_index(control, len(actions))
        draws = self.rng.draws_of_one(self._dim) if self._takes_draws else None
        index, score = state.code.choose_one(record, state.ring, actions, stamp, draws)
        signed = record["signed_propensity"].item() if self._is_randomised else math.nan
        now, number = self._moment(stamp), self.deferred.next_number
        self.drop_expired(now)
        summary = np.empty(self._dim + 2, np.int16)
        summarise.call(actions, summary)
        action = actions[index].copy()
        self.deferred.add(DeferredDecision(number, now, index, score, action, summary, subject=digest))
        return Decision(-number, index, action.copy(), score, *self._read_propensity(score, signed, len(actions)))

    def activate(self, decision: Decision | float, *, at: Moment | None = None) -> Verdict:
        """Record a deferred decision, which was shown now; its window begins now.

        `ACCEPTED`; `DUPLICATE`: it was activated before, or was not deferred; `LATE`: it has waited for longer than the
        activation timeout, or its window has closed; `UNKNOWN`: no such decision was made.
        """
        round_ = decision.round if isinstance(decision, Decision) else decision
        if isinstance(round_, bool) or not isinstance(round_, int) or round_ >= 0:
            return Verdict.DUPLICATE if 0 < round_of(round_) <= self.rounds else Verdict.UNKNOWN
        unstamped = at is None and self._in_rounds
        stamp = UNSTAMPED if unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
        self.drop_expired(self._moment(stamp))
        entry = self.deferred.find(-round_)
        if entry is None:
            if self.deferred.find_round(-round_) >= self.state.number("kept"):
                return Verdict.DUPLICATE
            return Verdict.LATE if -round_ < self.deferred.next_number else Verdict.UNKNOWN
        stamps, draws = np.array([stamp]), self.rng.draws(1, self._dim)
        self.state.record_many(entry.action[None], entry.summary[None], stamps, draws)
        self.note_activation(entry, self.rounds, stamp)
        if entry.subject:
            self.subjects.add(entry.subject, self.rounds, int(self.state.number("kept")))
        return Verdict.ACCEPTED

    def _moment(self, stamp: int) -> int:
        return self.rounds + 1 if stamp == UNSTAMPED else stamp

    def note_activation(self, entry: DeferredDecision, round_: int, stamp: int) -> None:
        """Note that a deferred decision has become a round; `stamp` is that of the round where the window is a time."""
        self.deferred.note_activation(entry, round_, round_ if self._in_rounds else stamp)

    def drop_expired(self, moment: int) -> None:
        """Drop the deferred decisions that have expired when the next decision is made at a moment.

        Those that were activated are remembered for twice as long as a report of them may change anything: until then a
        report that comes too late is told so.
        """
        remembered = moment - 2 * (self.span + self.correctable)
        self.deferred.drop_expired(moment, int(self.state.number("kept")), remembered)

    def find_note(self, number: int, stamp: int) -> bytes:
        """Return the note of a deferred decision; empty where it has expired, or its window and grace have passed.

        `stamp` is that of now where the window is a time. What was dropped has no note either, so that the answer does
        not depend on when that was.
        """
        entry, shown = self.deferred.find(number), self.deferred.find_activated(number)
        if entry is not None:
            moment = self.rounds + 1 if self._in_rounds else stamp
            return entry.note if moment - entry.stamp <= self.deferred.timeout else b""
        if shown is None:
            return b""
        age = (self.rounds if self._in_rounds else stamp) - shown.stamp
        return shown.note if age <= self.span + self.state.grace else b""

    def _find_round(self, decision: Decision | float) -> int:
        """Return the round that a report refers to: of a deferred decision, that of its activation, 0 before."""
        round_ = round_of(decision)
        if round_ >= 0:
            return round_
        return self.deferred.find_round(-round_)

    def _read_propensity(self, score: float, signed: float, count: int) -> tuple[float | None, bool]:
        """Return the propensity of a choice among so many actions, and whether the control made it."""
        if self._is_randomised:
            return abs(signed), signed < 0.0
        known = self._propensity or (score if self.algorithm.scores_are_probabilities else None)
        return (1.0 if known is None and count == 1 else known), False
