"""Conversions of a policy: by their decision, or by the subject of some decisions."""

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import UNSTAMPED
from latecomer.errors import InputError
from latecomer.policies.base.baskets import ANONYMOUS, digest_conversion
from latecomer.policies.base.decision import NO_ROUND, VERDICTS, Decision, Verdict
from latecomer.policies.base.reward import NOT_GIVEN, NotGiven
from latecomer.policies.base.staged_policy import StagedPolicy
from latecomer.policies.base.subjects import choose_rounds, digest_subject
from latecomer.timestamps import Moment


class ConvertingPolicy(StagedPolicy):
    """A policy that takes conversions, revocations and corrections."""

    @property
    def is_frozen(self) -> bool:
        """Tell whether the policy decides without learning."""
        return bool(self.state.record["frozen"][0])

    def freeze(self) -> None:
        """Decide without learning from now on: rounds are recorded, and neither they nor their conversions teach.

        Rounds of before go on to close and to take their conversions. Frozen rounds have ids, windows, verdicts and
        propensities as others have; the mean rate and the delay curve go on to count them.

        Examples
        --------
        >>> import numpy as np, latecomer as lc
        >>> policy = lc.recommended(dim=2, window=100, seed=0)
        >>> policy.freeze()
        >>> policy.convert(policy.decide(np.eye(2))).name, policy.V.tolist(), policy.B.tolist()
        ('ACCEPTED', [[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
        >>> policy.unfreeze()
        """
        self.state.record["frozen"][0] = 1

    def unfreeze(self) -> None:
        """Learn again, from the rounds that are decided from now on."""
        self.state.record["frozen"][0] = 0

    def convert(
        self,
        decision: Decision | float | None = None,
        value: float | NotGiven = NOT_GIVEN,
        *,
        at: Moment | None = None,
        subject: str | None = None,
        conversion_id: str | None = None,
        position: int = 1,
    ) -> Verdict:
        """Credit a conversion to its decision, while its window is open.

        Anything but `Verdict.ACCEPTED` has changed nothing. Once its window and the grace have passed a decision is
        forgotten, and any conversion of it is late, duplicates included.

        Parameters
        ----------
        decision
            The decision, or its round: a whole number, which may be a float, as in a column with missing values.
        value
            The value of the conversion, in [0, 1], and 1 where it is not given; with a `reward`, its amount, which must
            be given.
        at
            The time of arrival, where the window is a time, as in `decide`; NaT and NaN are refused. A time before the
            latest decision's counts as that one's. Of a time before the conversion's own decision the delay is
            unknown, and the delay curve leaves it out. With a grace it is when the conversion occurred: that must lie
            inside the window, and the latest decision inside the window and the grace.
        subject
            In place of the decision: the user, whose decisions are credited as `attribution` says. The verdict is
            `ACCEPTED` where any of them was credited.
        conversion_id
            The conversion's own id, of 1 to 200 characters: the same id counts once, whichever decision it is reported
            for, as long as it can be revoked; and with a `reward` that is the sum or the largest of the amounts, others
            of the decision count too. A digest of it is kept.
        position
            Of a decision with k > 1: the position of the action that converted, from 1.
        """
        if value is NOT_GIVEN and type(decision) is int and at is conversion_id is subject is None and self._is_plain:
            state = self.state
            if 0 < decision < NO_ROUND and position == 1:
                found = state.code.convert(state.record, state.ring, decision, 1.0, UNSTAMPED, UNSTAMPED)
                return VERDICTS[found]
        if position != 1:
            decision = find_position(decision, position)
        if type(value) is not float or not 0.0 <= value <= 1.0:
            value = self.reward.check_amount(value)
        if subject is not None or decision is None:
            return self._convert_subject(decision, subject, value, at, conversion_id)
        if conversion_id is not None or self.keeps_baskets:
            round_ = self._find_round(decision)
            stamp, digest = self._read_stamp(round_, at), digest_conversion(conversion_id)
            known = self.find_conversion(digest, stamp, stamp)
            return VERDICTS[self.credit_report(round_, value, digest, stamp, stamp, known)[0]]
        round_ = decision if type(decision) is int and 0 < decision < NO_ROUND else self._find_round(decision)
        stamp = UNSTAMPED if at is None and self._in_rounds else self._arrival_stamp(round_, at)
        state = self.state
        return VERDICTS[state.code.convert(state.record, state.ring, round_, value, stamp, stamp)]

    def revoke(
        self,
        decision: Decision | float | None = None,
        *,
        at: Moment | None = None,
        conversion_id: str | None = None,
        position: int = 1,
    ) -> Verdict:
        """Revoke a credited conversion for good: a purchase that was returned. What was learnt is corrected.

        A conversion can be revoked inside its decision's window and the grace, or the time for `returns` after the
        window. With a `conversion_id`, that one is revoked, of the decision or, where none is given, of each that has
        it; else all of the decision's are. Verdicts are as in `convert`, but `DUPLICATE`: it was revoked before;
        `UNKNOWN`: also, there is no such conversion. `position` is as in `convert`.
        """
        if position != 1:
            decision = find_position(decision, position)
        digest = None if conversion_id is None else digest_conversion(conversion_id)
        if decision is None and digest is None:
            raise InputError("a revocation must name its decision or its conversion_id; got neither", field="decision")
        rounds = self.find_credited(decision, None, conversion_id, at=at)
        found = []
        for round_ in rounds:
            stamp = self._read_stamp(round_, at)
            found.append(VERDICTS[self.revoke_conversion(round_, digest, stamp, stamp)])
        return join_verdicts(found)

    def correct(self, decision: Decision | float, value: float, *, at: Moment | None = None) -> Verdict:
        """Replace what a decision is credited with by another value: a basket that grew, or part of it returned.

        It can be corrected for as long as it could be revoked. `DUPLICATE`: it is credited with that already, or its
        conversion was revoked; `UNKNOWN`: also, it has not converted. The conversions before it are taken back with
        their ids; those that come later add to the value, as the reward says.
        """
        amount, round_ = self.reward.check_amount(value), self._find_round(decision)
        stamp = self._read_stamp(round_, at)
        return VERDICTS[self.correct_credit(round_, amount, stamp, stamp)]

    def reach(self, decision: Decision | float, stage: str, *, at: Moment | None = None, position: int = 1) -> Verdict:
        """Note that a decision has reached one of the policy's `stages`, once each; its surrogate is credited.

        `ACCEPTED`; `DUPLICATE`: it had reached it before; `LATE`: its window and the grace have passed; `UNKNOWN`: no
        such decision was made. `at` and `position` are as in `convert`.
        """
        round_ = self._find_round(decision) if position == 1 else find_position(decision, position)
        return VERDICTS[self.reach_stage(round_, stage, *[self._read_stamp(round_, at)] * 2)]

    def attribute(self, subject: str, *, at: Moment | None = None) -> list[int]:
        """Return the rounds that a conversion of a subject would be credited to, if it occurred at that time."""
        digest = digest_subject(subject)
        return self.attribute_digest(digest, UNSTAMPED if at is None and self._in_rounds else self._clock.read(at))

    def attribute_digest(self, digest: bytes, stamp: int) -> list[int]:
        """Return the rounds that a conversion at that stamp is credited to.

        Where the subject has no decision whose window holds the stamp, that is the latest one before it, whose verdict
        will be `LATE`.
        """
        state = self.state
        held = self.subjects.find(digest, int(state.number("kept")))
        if self._in_rounds:
            inside = [round_ for round_ in held if self.rounds - round_ <= self.span]
            return choose_rounds(inside, self.attribution) or held[-1:]
        before = [(round_, made) for round_ in held if (made := self._stamp_of(round_)) <= stamp]
        inside = [round_ for round_, made in before if stamp - made <= self.span]
        return choose_rounds(inside, self.attribution) or [round_ for round_, _ in before[-1:]]

    def _stamp_of(self, round_: int) -> int:
        block, lane = self._place_of(round_)
        return int(self.state.ring["stamp"][block, lane])

    def _convert_subject(
        self,
        decision: Decision | float | None,
        subject: str | None,
        value: float,
        at: Moment | None,
        conversion_id: str | None,
    ) -> Verdict:
        if subject is None or decision is not None:
            given = "neither" if subject is None else "both"
            remedy = "leave out rows without a decision" if subject is None else "leave one of them out"
            raise InputError(
                f"a conversion must name its decision or its subject; got {given}: {remedy}", field="subject"
            )
        if at is None and not self._in_rounds:
            at = self._clock.now()  # one time for all
        digest = ANONYMOUS if conversion_id is None else digest_conversion(conversion_id)
        rounds = self.find_credited(None, subject, conversion_id, at=at)
        if conversion_id is None:
            return join_verdicts([self.convert(round_, value, at=at) for round_ in rounds])
        stamps = [self._read_stamp(round_, at) for round_ in rounds]
        known = set(self.find_conversion(digest, stamps[0], stamps[0])) if stamps else set[int]()
        return join_verdicts(
            [
                VERDICTS[self.credit_report(round_, value, digest, stamp, stamp, known)[0]]
                for round_, stamp in zip(rounds, stamps, strict=True)
            ]
        )

    def find_credited(
        self,
        decision: Decision | float | None,
        subject: str | None,
        conversion_id: str | None,
        *,
        at: Moment | None,
        position: int = 1,
    ) -> list[int]:
        """Return the rounds that a report is about: of its decision, or of its conversion's id, or of its subject.

        Once the id of a conversion is known, it is where it was, whatever the subject has seen since.
        """
        if decision is not None:
            return [self._find_round(decision) if position == 1 else find_position(decision, position)]
        known: list[int] = []
        if conversion_id is not None:
            stamp = UNSTAMPED if at is None and self._in_rounds else self._clock.read(at)
            known = self.find_conversion(digest_conversion(conversion_id), stamp, stamp)
        return known or ([] if subject is None else self.attribute(subject, at=at))

    def _read_stamp(self, round_: int, at: Moment | None) -> int:
        return UNSTAMPED if at is None and self._in_rounds else self._arrival_stamp(round_, at)

    def _arrival_stamp(self, round_: int, at: Moment | None) -> int:
        stamp, now = self._clock.read(at), self._now
        if now - stamp <= self.span + self.state.grace:
            return stamp  # as it is: the kernel tells a time before its own decision from one before the latest
        if self.state.judge_conversion(round_, now) != ACCEPTED:
            return now  # an old message for a decision that is closed or converted: the verdict says so
        return self._clock.not_before(stamp, now, latest=self.rounds, grace=self.state.grace)  # raises


def find_position(decision: Decision | float | None, position: int) -> int:
    """Return the round of a position of a decision with k > 1."""
    if not isinstance(decision, Decision):
        raise InputError(
            f"position needs the decision that ranked the actions; got {decision!r}: give it, or the place's round",
            field="position",
        )
    return decision.find_round(position)


def join_verdicts(verdicts: list[Verdict]) -> Verdict:
    """Return one verdict for a conversion of several decisions: accepted where any is, else that of the last."""
    if not verdicts:
        return Verdict.UNKNOWN
    return Verdict.ACCEPTED if Verdict.ACCEPTED in verdicts else verdicts[-1]
