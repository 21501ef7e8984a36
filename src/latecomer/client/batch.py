"""Conversions that wait a moment for each other, from ordinary code."""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Self

from latecomer.arguments import share
from latecomer.errors import InputError, LatecomerError
from latecomer.service.messages import Conversion, Verdict


class Batch:
    """Collects conversions and sends them together. Safe to use from several threads.

    `verdicts` counts what became of those that were sent. What could not be sent waits for the next attempt, and the
    last one, at the end of `with`, raises.
    """

    def __init__(self, send: Callable[[list[Conversion]], list[Verdict]], *, size: int, seconds: float) -> None:
        checked_limits(size, seconds)
        self.verdicts: Counter[Verdict] = Counter()
        self._send, self._size, self._seconds = send, size, seconds
        self._waiting: list[Conversion] = []
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._flush_now_and_then, daemon=True, name="latecomer-batch")

    def convert(self, decision_id: str, *, value: float = 1.0, occurred_at: datetime | None = None) -> None:
        """Report a conversion, soon."""
        with self._lock:
            self._waiting.append(checked(Conversion(decision_id, value, occurred_at)))
            is_full = len(self._waiting) >= self._size
        if is_full:
            self.flush()

    def flush(self) -> None:
        """Send what is waiting, now."""
        with self._sending:
            with self._lock:
                going, self._waiting = self._waiting, []
            if not going:
                return
            try:
                self.verdicts.update(self._send(going))
            except BaseException:
                with self._lock:
                    self._waiting = going + self._waiting
                raise

    def _flush_now_and_then(self) -> None:
        while not self._wake.wait(self._seconds):
            try:
                self.flush()
            except LatecomerError:  # they still wait, and the end of `with` raises
                continue

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wake.set()
        self._thread.join()
        self.flush()


def checked(conversion: Conversion) -> Conversion:
    """A mistake is told at once, not when others travel with it."""
    share("value", conversion.value)
    if not isinstance(conversion.decision_id, str):
        raise InputError(f"decision_id must be a string, as it was given; got {conversion.decision_id!r}")
    if not (conversion.occurred_at is None or isinstance(conversion.occurred_at, datetime)):
        raise InputError(f"occurred_at must be a datetime; got {conversion.occurred_at!r}")
    return conversion


def checked_limits(size: int, seconds: float) -> None:
    """A batch has room, and an end."""
    if size < 1 or seconds <= 0:
        raise InputError(f"size must be at least 1 and seconds above 0; got {size!r} and {seconds!r}")
