"""Conversions and revocations of a policy: judged by its clock, and credited to their decisions."""

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import UNSTAMPED
from latecomer.policies.base.decision import NO_ROUND, VERDICTS, Decision, Verdict
from latecomer.policies.base.deferring_policy import DeferringPolicy
from latecomer.timestamps import Moment
from latecomer.validation import check_conversion_value


class ConvertingPolicy(DeferringPolicy):
    """A policy that takes conversions and revocations, while their windows are open or their grace lasts."""

    def convert(self, decision: Decision | float, value: float = 1.0, *, at: Moment | None = None) -> Verdict:
        """Credit a conversion to its decision, while its window is open.

        Anything but `Verdict.ACCEPTED` has changed nothing. Once its window and the grace have passed a decision is
        forgotten, and any conversion of it is late, duplicates included.

        Parameters
        ----------
        decision
            The decision, or its round: a whole number, which may be a float, as in a column with missing values.
        value
            The value of the conversion, in [0, 1].
        at
            The time of arrival, where the window is a time, as in `decide`; NaT and NaN are refused. A time before the
            latest decision's counts as that one's. Of a time before the conversion's own decision the delay is
            unknown, and the delay curve leaves it out. With a grace it is when the conversion occurred: that must lie
            inside the window, and the latest decision inside the window and the grace.
        """
        if type(value) is not float or not 0.0 <= value <= 1.0:
            value = check_conversion_value("value", value)
        round_ = decision if type(decision) is int and 0 < decision < NO_ROUND else self._find_round(decision)
        stamp = UNSTAMPED if at is None and self._in_rounds else self._arrival_stamp(round_, at)
        state = self.state
        return VERDICTS[state.code.convert(state.record, state.ring, round_, value, stamp, stamp)]

    def revoke(self, decision: Decision | float, *, at: Moment | None = None) -> Verdict:
        """Revoke a credited conversion for good, inside its window and grace: a purchase that was returned.

        Verdicts are as in `convert`, but `DUPLICATE`: it was revoked before; `UNKNOWN`: also, it has not converted.
        """
        round_ = self._find_round(decision)
        stamp = UNSTAMPED if at is None and self._in_rounds else self._arrival_stamp(round_, at)
        return VERDICTS[self.state.revoke(round_, stamp, stamp)]

    def _arrival_stamp(self, round_: int, at: Moment | None) -> int:
        stamp, now = self._clock.read(at), self._now
        if now - stamp <= self.span + self.state.grace:
            return stamp  # as it is: the kernel tells a time before its own decision from one before the latest
        if self.state.judge_conversion(round_, now) != ACCEPTED:
            return now  # an old message for a decision that is closed or converted: the verdict says so
        return self._clock.not_before(stamp, now, latest=self.rounds)  # raises
