"""Rounds and clocks as stamps: one monotone int64, whatever the window's unit."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np

from latecomer.arguments import whole
from latecomer.errors import ClockError, InputError

Span = int | timedelta
Moment = datetime | float
"""A `datetime` (UTC where it has no zone) or seconds since 1970."""
Clock = Callable[[], Moment]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FURTHEST = 2**61


def system_clock() -> datetime:
    """The machine's time."""
    return datetime.now(UTC)


def span_of(window: Span) -> int:
    """A window in its own unit: rounds, or microseconds."""
    if isinstance(window, timedelta):
        if window < timedelta(0):
            raise InputError(f"window must not be negative; got {window!r}")
        return whole("window, in microseconds,", window // _MICROSECOND, least=0)
    if isinstance(window, bool | np.timedelta64) or not isinstance(window, int | np.integer):
        raise InputError(f"window must be a number of rounds (an int) or a timedelta; got {window!r}")
    return whole("window", window, least=0)


def stamp_of(moment: Moment) -> int:
    """A moment in microseconds since 1970."""
    if type(moment) is float and abs(moment) <= _FURTHEST / 1e6:  # most are; NaN is not
        return round(moment * 1e6)
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND
    if isinstance(moment, int | float | np.integer | np.floating) and not isinstance(moment, bool):
        if not math.isfinite(moment) or abs(moment) * 1e6 > _FURTHEST:
            raise InputError(f"at must be a finite time in seconds since 1970; got {moment!r}")
        return round(float(moment) * 1e6)
    raise InputError(f"at must be a datetime or seconds since 1970; got {moment!r}")


def not_before(stamp: int, now: int, span: int) -> int:
    """Time does not run backwards: an earlier stamp counts as `now`, unless it is off by more than the window."""
    if stamp >= now:
        return stamp
    if now - stamp > span:
        behind = timedelta(microseconds=now - stamp)
        raise ClockError(
            f"at must not lie further back than the window, {timedelta(microseconds=span)}; "
            f"got a time {behind} before the latest decision: check the clock, or its unit"
        )
    return now
