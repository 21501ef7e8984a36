"""Durations as callers give them: "7d", a `timedelta`, a numpy.timedelta64."""

import re
from datetime import timedelta

import numpy as np

from latecomer.errors import InputError
from latecomer.validation import check_integer, short_repr

Duration = timedelta | str | np.timedelta64
"""A `timedelta` (pandas.Timedelta is one), a text such as "7d", or a numpy.timedelta64."""
Span = int | Duration
"""A window: rounds (an int), or a time."""

_MICROSECOND = timedelta(microseconds=1)
_UNITS = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TEXT = re.compile(rf"([0-9]{{1,12}}) ?({'|'.join(_UNITS)})")
_LONGEST = timedelta(days=36_500)
_FINER = ("ns", "ps", "fs", "as")
"""Units of NumPy that are shorter than a microsecond."""


def parse_duration(duration: Duration, *, name: str = "window", such_as: str = "7d") -> timedelta:
    """Give a span of time as a `timedelta`.

    Parameters
    ----------
    duration
        A whole number followed by s, m or min, h, d or w, perhaps with a space between, at most 36500d; a `timedelta`;
        or a numpy.timedelta64.
    name, such_as
        What an error calls it, and gives as an example.

    Examples
    --------
    >>> parse_duration("36h") == parse_duration("90 min") * 24
    True
    """
    if isinstance(duration, timedelta):
        return duration // _MICROSECOND * _MICROSECOND  # a plain one, of pandas.Timedelta too
    if isinstance(duration, np.timedelta64):
        return _from_numpy(duration, name, such_as)
    match = _TEXT.fullmatch(duration) if isinstance(duration, str) else None
    if match is None:
        rule = f"a whole number and one of {', '.join(_UNITS)}, such as {such_as}"
        raise InputError(f"{name} must be {rule}; got {short_repr(duration)}", field=name)
    try:
        span = timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        span = timedelta.max
    if span > _LONGEST:
        raise InputError(f"{name} must be at most 36500d; got {short_repr(duration)}", field=name)
    return span


def parse_window(window: Span, *, name: str = "window") -> int | timedelta:
    """Give a window as policies keep it: an int is rounds, all else a time. Errors call it by its `name`.

    >>> parse_window(500), parse_window("7d")
    (500, datetime.timedelta(days=7))
    """
    if isinstance(window, timedelta | str | np.timedelta64):
        span = parse_duration(window, name=name)
        if span < timedelta(0):
            raise InputError(f"{name} must not be negative; got {window!r}", field=name)
        if (ticks := span // _MICROSECOND) >= 2**62:
            raise InputError(f"{name}, in microseconds, must be at least 0 and below 2^62; got {ticks!r}", field=name)
        return span
    if isinstance(window, bool) or not isinstance(window, int | np.integer):
        raise InputError(
            f"{name} must be a number of rounds (an int), or a time such as '7d' or a timedelta; "
            f"got {short_repr(window)}",
            field=name,
        )
    return check_integer(name, window, least=0)


def parse_grace(grace: Duration | None, window: int | timedelta) -> timedelta:
    """Give the grace that goes with a window; None is none.

    >>> parse_grace("1d", parse_window("7d")), parse_grace(None, 500)
    (datetime.timedelta(days=1), datetime.timedelta(0))
    """
    if grace is None:
        return timedelta(0)
    found = parse_duration(grace, name="grace", such_as="1d")
    if found < timedelta(0):
        raise InputError(f"grace must not be negative; got {grace!r}", field="grace")
    if not isinstance(window, timedelta):
        raise InputError(
            f"grace is for windows in time, and this window is {window} rounds; got {grace!r}: leave it out",
            field="grace",
        )
    if window // _MICROSECOND + found // _MICROSECOND >= 2**62:
        raise InputError(f"window and grace must be below 2^62 microseconds together; got {grace!r}", field="grace")
    return found


def format_duration(seconds: float) -> str:
    """Format a duration in the largest unit that it holds one of.

    >>> [format_duration(seconds) for seconds in (90, 3600, 86_400 * 29.97, 0.25, 86_400 * 20_776)]
    ['1.5 min', '1 h', '30 d', '0.25 s', '20,776 d']
    """
    for name, unit in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= unit:
            count = seconds / unit
            return f"{count:,.0f} {name}" if count >= 100 else f"{count:.3g} {name}"
    return f"{seconds:.3g} s"


def _from_numpy(duration: np.timedelta64, name: str, such_as: str) -> timedelta:
    is_finer = np.datetime_data(duration.dtype)[0] in _FINER
    found = (duration.astype("timedelta64[us]") if is_finer else duration).item()
    if isinstance(found, timedelta):  # not so for NaT, months, years, no unit, and more than Python has room for
        return found
    raise InputError(f"{name} must be a time of a known length, such as {such_as}; got {duration!r}", field=name)
