"""The end of a verb: what is to be done then, however it ends, and SIGTERM."""

import signal
import threading
from collections.abc import Callable

_calls: list[Callable[[], object]] = []


def call_at_end(call: Callable[[], object]) -> None:
    """Have a function called when the verb has ended, the latest first."""
    _calls.append(call)


def end_verb() -> None:
    """Call what was to be called."""
    while _calls:
        _calls.pop()()


def take_sigterm_as_interrupt() -> None:
    """Have SIGTERM end the running verb as Ctrl-C does, so that what is done is kept."""
    if threading.current_thread() is threading.main_thread():  # signals are for that one
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        call_at_end(lambda: signal.signal(signal.SIGTERM, before))
