"""Stamps: one monotone int64 for the time of a decision or a conversion, whatever the window's unit."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from latecomer.core.state import UNSTAMPED
from latecomer.durations import Span, format_duration
from latecomer.errors import ClockError, InputError
from latecomer.timestamps import Moment, parse_timestamp, to_datetime

__all__ = ["Clock", "Span", "WindowClock", "system_clock"]

Clock = Callable[[], Moment]


def system_clock() -> datetime:
    """Return the machine's time."""
    return datetime.now(UTC)


class WindowClock:
    """Reads the times that a caller gives, or the clock, as stamps in the unit of the window."""

    def __init__(self, window: int | timedelta, clock: Clock | None) -> None:
        if clock is not None and not callable(clock):
            raise InputError(f"clock must be a function that tells the time; got {clock!r}", field="clock")
        self._clock = clock or system_clock
        self.in_rounds = not isinstance(window, timedelta)
        self.span = window // timedelta(microseconds=1) if isinstance(window, timedelta) else window
        """The window in the unit of stamps: rounds, or microseconds."""

    def read(self, at: Moment | None) -> int:
        """Read a time, or the clock where it is None; refuse one where the window is in rounds."""
        if self.in_rounds:
            self._refuse_time(at)
        return parse_timestamp(self._clock(), name="what clock tells") if at is None else parse_timestamp(at)

    def now(self) -> Moment:
        """Return what the clock tells."""
        return self._clock()

    def decision_stamp(self, at: Moment | None, *, now: int, rounds: int) -> int:
        """Read the time of a decision; the latest one was round `rounds`, at `now`."""
        return self.not_before(self.read(at), now, latest=rounds)

    def decision_stamps(self, at: Any, count: int, *, now: int, rounds: int) -> npt.NDArray[np.int64]:
        """Read the times of a batch of decisions: one time for all, or one for each."""
        if self.in_rounds:
            return np.full(count, UNSTAMPED if at is None else self._refuse_time(at))
        if isinstance(at, str) or not hasattr(at, "__len__"):
            return np.full(count, self.decision_stamp(at, now=now, rounds=rounds))
        if np.shape(at)[:1] != (count,):
            raise InputError(f"at must be one time, or one per action set, {count}; got {at!r}", field="at")
        stamps = np.empty(count, np.int64)
        for i, moment in enumerate(at):
            try:
                stamps[i] = now = self.not_before(parse_timestamp(moment), now, latest=rounds + i)
            except InputError as error:
                raise type(error)(f"for set {i} of the batch: {error}") from None
        return stamps

    def not_before(self, stamp: int, now: int, *, latest: int, grace: int = 0) -> int:
        """Return a stamp that is not before `now`, when round `latest` was decided.

        An earlier stamp counts as `now`, unless it is off by more than the window, and the grace of a conversion.
        """
        if stamp >= now:
            return stamp
        if now - stamp > self.span + grace:
            limit, behind = format_duration((self.span + grace) / 1e6), format_duration((now - stamp) / 1e6)
            behind = f"just over {behind}" if behind == limit else behind
            rule = "the window and the grace" if grace else "the window"
            raise ClockError(
                f"at must not lie further back than {rule}, {limit}; got a time {behind} before the latest "
                f"decision, round {latest} at {to_datetime(now).isoformat()}: "
                "check the clock, or its unit; or a missing time (None is now) or a mistyped one went before it"
            )
        return now

    def _refuse_time(self, at: object) -> NoReturn:
        raise InputError(
            f"at is for windows in time, and this window is {self.span} rounds; got {at!r}: leave it out", field="at"
        )
