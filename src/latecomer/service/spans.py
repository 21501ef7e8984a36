"""Spans of time as people write them: "7d", "36h", "forever"."""

import re
from datetime import timedelta

from latecomer.arguments import shown
from latecomer.errors import InputError

FOREVER = "forever"
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST = timedelta(days=36_500)


def duration(text: str, *, name: str = "window", such_as: str = "7d") -> timedelta:
    """The span that a number and a unit say.

    Parameters
    ----------
    text
        A whole number followed by s, m, h, d or w; at most 36500d.
    name, such_as
        What an error calls it, and gives as an example.

    Examples
    --------
    >>> duration("36h") == duration("90m") * 24
    True
    """
    match = re.fullmatch(r"([0-9]{1,12})([smhdw])", text) if isinstance(text, str) else None
    if match is None:
        rule = f"a whole number and one of s, m, h, d, w, such as {such_as}"
        raise InputError(f"{name} must be {rule}; got {shown(text)}")
    try:
        span = timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        span = timedelta.max
    if span > _LONGEST:
        raise InputError(f"{name} must be at most 36500d; got {shown(text)}")
    return span


def retention_of(text: str) -> int | None:
    """Microseconds that a decision stays in the log after its window; None for ever.

    >>> retention_of("1s"), retention_of("forever")
    (1000000, None)
    """
    if text == FOREVER:
        return None
    return duration(text, name="retention", such_as="7d, or forever") // timedelta(microseconds=1)


def window_of(window: int | str) -> int | timedelta:
    """A window as a policy takes it: an int is rounds, text is a time."""
    if type(window) is not int and not isinstance(window, str):
        raise InputError(f"window must be a number of rounds (an int) or a time such as '7d'; got {window!r}")
    return duration(window) if isinstance(window, str) else window


def written(window: int | str | timedelta) -> int | str:
    """A window as it is written down: a time in whole seconds."""
    if not isinstance(window, timedelta):
        return window
    if window % timedelta(seconds=1):
        raise InputError(f"window must be whole seconds; got {window!r}")
    return f"{window // timedelta(seconds=1)}s"
