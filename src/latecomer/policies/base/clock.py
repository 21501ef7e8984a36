"""Rounds and clocks as stamps: one monotone int64, whatever the window's unit."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from latecomer.durations import Span
from latecomer.errors import ClockError
from latecomer.timestamps import Moment, to_datetime

__all__ = ["Clock", "Span", "not_before", "span_of", "system_clock"]

Clock = Callable[[], Moment]


def system_clock() -> datetime:
    """The machine's time."""
    return datetime.now(UTC)


def span_of(window: int | timedelta) -> int:
    """A window in its own unit: rounds, or microseconds."""
    return window // timedelta(microseconds=1) if isinstance(window, timedelta) else window


def not_before(stamp: int, now: int, *, span: int, latest: int) -> int:
    """Time does not run backwards: an earlier stamp counts as `now`, unless it is off by more than the window.

    `latest` is the round of the latest decision, which was made at `now`.
    """
    if stamp >= now:
        return stamp
    if now - stamp > span:
        behind = timedelta(microseconds=now - stamp)
        raise ClockError(
            f"at must not lie further back than the window, {timedelta(microseconds=span)}; "
            f"got a time {behind} before the latest decision, round {latest} at {to_datetime(now).isoformat()}: "
            "check the clock, or its unit; or a missing time (None is now) or a mistyped one went before it"
        )
    return now
