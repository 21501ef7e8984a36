"""Spans of time as people write them: "7d", "36h"."""

import re
from datetime import timedelta

from latecomer.errors import InputError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST = timedelta(days=36_500)


def duration(text: str, *, name: str = "window") -> timedelta:
    """The span that a number and a unit say.

    Parameters
    ----------
    text
        A whole number followed by s, m, h, d or w; at most 36500d.
    name
        What an error calls it.

    Examples
    --------
    >>> duration("36h") == duration("90m") * 24
    True
    """
    match = re.fullmatch(r"([0-9]{1,12})([smhdw])", text) if isinstance(text, str) else None
    if match is None:
        raise InputError(f"{name} must be a whole number and one of s, m, h, d, w, such as 7d; got {text!r}")
    try:
        span = timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        span = timedelta.max
    if span > _LONGEST:
        raise InputError(f"{name} must be at most 36500d; got {text!r}")
    return span


def window_of(window: int | str) -> int | timedelta:
    """A window as a policy takes it: an int is rounds, text is a time."""
    return duration(window) if isinstance(window, str) else window
