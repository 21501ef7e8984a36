"""Windows and retentions as the service's texts: "7d", "36h", "forever"."""

from datetime import timedelta

from latecomer.durations import Duration, Span, parse_duration, parse_window
from latecomer.errors import InputError

FOREVER = "forever"


def parse_retention(text: str) -> int | None:
    """Return the microseconds that a decision stays in the log after its window; None for ever.

    >>> parse_retention("1s"), parse_retention("forever")
    (1000000, None)
    """
    if text == FOREVER:
        return None
    if not isinstance(text, str):
        raise InputError(f"retention must be a text such as '7d', or 'forever'; got {text!r}", field="retention")
    return parse_duration(text, name="retention", such_as="7d, or forever") // timedelta(microseconds=1)


def parse_window_text(window: int | str) -> int | timedelta:
    """Return a window as a policy takes it: an int is rounds, a text is a time."""
    if type(window) is not int and not isinstance(window, str):
        raise InputError(
            f"window must be a number of rounds (an int) or a time such as '7d'; got {window!r}", field="window"
        )
    return parse_window(window)


def format_grace(grace: Duration | None) -> str | None:
    """Return a grace as a specification holds it: a text as it is, or a time in whole seconds."""
    if grace is None or isinstance(grace, str):
        return grace
    span = parse_duration(grace, name="grace", such_as="1d")
    if span < timedelta(0):
        raise InputError(f"grace must not be negative; got {grace!r}", field="grace")
    if span % timedelta(seconds=1):
        raise InputError(f"grace must be whole seconds; got {grace!r}", field="grace")
    return f"{span // timedelta(seconds=1)}s"


def format_window(window: Span, *, name: str = "window") -> int | str:
    """Return a window as a specification holds it: rounds, a text as it is, or a time in whole seconds."""
    span = window if isinstance(window, str) else parse_window(window, name=name)
    if not isinstance(span, timedelta):
        return span
    if span % timedelta(seconds=1):
        raise InputError(f"{name} must be whole seconds; got {window!r}", field=name)
    return f"{span // timedelta(seconds=1)}s"
