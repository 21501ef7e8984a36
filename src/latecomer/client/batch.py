"""Conversions that wait a moment for each other, from ordinary code."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Self

from latecomer.errors import InputError, LatecomerError
from latecomer.service.bandit.verdicts import VerdictList, warn_of
from latecomer.service.messages import Conversion, DecisionAnswer, Verdict, decision_id_of
from latecomer.timestamps import Moment, parse_datetime
from latecomer.validation import check_conversion_value


class ConversionBatch:
    """Collects conversions and sends them together. Safe to use from several threads.

    `verdicts` counts what became of those that were sent, and `warnings` those of them that were accepted and look
    wrong, by code; the end of `with` warns of them. What could not be sent waits for the next attempt, and the
    last one, at the end of `with`, raises.
    """

    def __init__(self, send: Callable[[list[Conversion]], VerdictList], *, size: int, seconds: float) -> None:
        checked_limits(size, seconds)
        self.verdicts: Counter[Verdict] = Counter()
        self.warnings: Counter[str] = Counter()
        self._send, self._size, self._seconds = send, size, seconds
        self._waiting: list[Conversion] = []
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._flush_now_and_then, daemon=True, name="latecomer-batch")

    def convert(
        self, decision_id: DecisionAnswer | str, *, value: float = 1.0, occurred_at: Moment | None = None
    ) -> None:
        """Report a conversion, soon."""
        with self._lock:
            self._waiting.append(checked(decision_id, value, occurred_at))
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
                found = self._send(going)
            except BaseException:
                with self._lock:
                    self._waiting = going + self._waiting
                raise
            self.verdicts.update(found)
            self.warnings.update(warning.code for warning in found.warnings)

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
        warn_of(self.warnings, stacklevel=3)


def checked(decision_id: DecisionAnswer | str, value: float, occurred_at: Moment | None) -> Conversion:
    """A conversion; a mistake is told at once, not when others travel with it."""
    check_conversion_value("value", value)
    return Conversion(decision_id_of(decision_id), value, parse_datetime(occurred_at, name="occurred_at"))


def checked_limits(size: int, seconds: float) -> None:
    """A batch has room, and an end."""
    if size < 1 or seconds <= 0:
        raise InputError(f"size must be at least 1 and seconds above 0; got {size!r} and {seconds!r}")
