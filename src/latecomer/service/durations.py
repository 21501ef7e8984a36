"""Windows and retentions as the service writes them down: "7d", "36h", "forever"."""

from datetime import timedelta

from latecomer.durations import Span, parse_duration, parse_window
from latecomer.errors import InputError

FOREVER = "forever"


def retention_of(text: str) -> int | None:
    """Microseconds that a decision stays in the log after its window; None for ever.

    >>> retention_of("1s"), retention_of("forever")
    (1000000, None)
    """
    if text == FOREVER:
        return None
    if not isinstance(text, str):
        raise InputError(f"retention must be a text such as '7d', or 'forever'; got {text!r}", field="retention")
    return parse_duration(text, name="retention", such_as="7d, or forever") // timedelta(microseconds=1)


def window_of(window: int | str) -> int | timedelta:
    """A window as a policy takes it: an int is rounds, text is a time."""
    if type(window) is not int and not isinstance(window, str):
        raise InputError(
            f"window must be a number of rounds (an int) or a time such as '7d'; got {window!r}", field="window"
        )
    return parse_window(window)


def written(window: Span) -> int | str:
    """A window as it is written down: a time in whole seconds, unless it is a text already."""
    span = window if isinstance(window, str) else parse_window(window)
    if not isinstance(span, timedelta):
        return span
    if span % timedelta(seconds=1):
        raise InputError(f"window must be whole seconds; got {window!r}", field="window")
    return f"{span // timedelta(seconds=1)}s"
