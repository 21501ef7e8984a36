"""Batches of conversions: collected, and sent together."""

import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Self

from latecomer.errors import InputError, LatecomerError
from latecomer.policies.base.baskets import digest_conversion
from latecomer.policies.base.reward import LARGEST_AMOUNT
from latecomer.service.bandit.verdict_list import VerdictList, warn_of
from latecomer.service.messages import Conversion, DecisionAnswer, Revocation, Verdict, decision_id_of
from latecomer.timestamps import Moment, parse_datetime
from latecomer.validation import check_nonnegative

_PLACE = re.compile(r"\[(\d+)\]")
"""The place of a conversion in a request, at the beginning of an error's field."""


class ConversionBatch:
    """Collects conversions and sends them together. Safe to use from several threads.

    `verdicts` counts the verdicts on those that were sent; `warnings`, by code, those that were accepted and look
    wrong; the end of `with` warns of them. Conversions that could not be sent wait for the next attempt; the last
    attempt, at the end of `with`, raises. `refused` has the errors of conversions that the server did not take, such as
    a value beyond the bandit's scale; all others are sent, and the end of `with` raises the first.
    """

    def __init__(self, send: Callable[[list[Conversion]], VerdictList], *, size: int, seconds: float) -> None:
        check_limits(size, seconds)
        self.verdicts: Counter[Verdict] = Counter()
        self.warnings: Counter[str] = Counter()
        self.refused: list[InputError] = []
        self._send, self._size, self._seconds = send, size, seconds
        self._waiting: list[Conversion] = []
        self._lock, self._flush_lock = threading.Lock(), threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._flush_periodically, daemon=True, name="latecomer-batch")

    def convert(
        self,
        decision_id: DecisionAnswer | str,
        *,
        value: float | None = None,
        occurred_at: Moment | None = None,
        conversion_id: str | None = None,
    ) -> None:
        """Report a conversion, soon."""
        with self._lock:
            self._waiting.append(make_conversion(decision_id, value, occurred_at, conversion_id))
            is_full = len(self._waiting) >= self._size
        if is_full:
            self.flush()

    def flush(self) -> None:
        """Send what is waiting, now."""
        with self._flush_lock:
            with self._lock:
                sending, self._waiting = self._waiting, []
            if not sending:
                return
            try:
                found = self._send_or_leave_out(sending)
            except BaseException:
                with self._lock:
                    self._waiting = sending + self._waiting
                raise
            self.verdicts.update(found)
            self.warnings.update(warning.code for warning in found.warnings)

    def _send_or_leave_out(self, sending: list[Conversion]) -> VerdictList:
        """Send conversions; one that the server refuses is left out of the list, so that the others do not wait."""
        while sending:
            try:
                return self._send(sending)
            except InputError as error:
                leave_out(sending, error)
                self.refused.append(error)
        return VerdictList()

    def _flush_periodically(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                self.flush()
            except LatecomerError:  # they still wait, and the end of `with` raises
                continue

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.flush()
        warn_of(self.warnings, stacklevel=3)
        if self.refused:
            raise self.refused[0]


def leave_out(sending: list[Conversion], error: InputError) -> None:
    """Remove the conversion that an error names; raise the error where it names none."""
    refused = _PLACE.match(error.field or "")
    if refused is None or int(refused[1]) >= len(sending):
        raise error
    del sending[int(refused[1])]


def make_conversion(
    decision_id: DecisionAnswer | str, value: float | None, occurred_at: Moment | None, conversion_id: str | None
) -> Conversion:
    """Make a conversion; a mistake is raised at once, not when the batch is sent."""
    if value is not None:
        check_nonnegative("value", value, most=LARGEST_AMOUNT)  # what else it must be depends on the bandit's reward
    digest_conversion(conversion_id)
    occurred = parse_datetime(occurred_at, name="occurred_at")
    return Conversion(decision_id_of(decision_id), value, occurred, None, conversion_id)


def make_revocation(
    decision_id: DecisionAnswer | str | None, occurred_at: Moment | None, conversion_id: str | None
) -> Revocation:
    """Make a revocation, of a decision or of a conversion."""
    target = None if decision_id is None else decision_id_of(decision_id)
    return Revocation(target, parse_datetime(occurred_at, name="occurred_at"), conversion_id)


def check_limits(size: int, seconds: float) -> None:
    """Check the size and the interval of a batch."""
    if size < 1 or seconds <= 0:
        raise InputError(
            f"size must be at least 1 and seconds above 0; got {size!r} and {seconds!r}",
            field="size" if size < 1 else "seconds",
        )
