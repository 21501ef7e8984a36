"""A log of bounded size for lines that any client can cause."""

import asyncio
from time import monotonic
from typing import Any

from latecomer.service.http.logging_setup import Log

_MAX_LINES = 20
_SECONDS = 60.0


class LimitedLog:
    """Writes at most so many lines in so many seconds, and then how many were left out."""

    def __init__(self, log: Log, *, max_lines: int = _MAX_LINES, seconds: float = _SECONDS) -> None:
        self._log, self._max_lines, self._seconds = log, max_lines, seconds
        self._start, self._written = -seconds, 0
        self._event, self._left_out = "", 0

    def warn(self, event: str, **fields: Any) -> None:
        """Write a line, or count it as left out."""
        now = monotonic()
        if not self._left_out and now - self._start >= self._seconds:
            self._start, self._written = now, 0
        if self._written < self._max_lines:
            self._written += 1
            self._log.warning(event, **fields)
            return
        if not self._left_out:
            asyncio.get_running_loop().call_later(self._start + self._seconds - now, self.sum_up)
        self._event, self._left_out = event, self._left_out + 1

    def sum_up(self) -> None:
        """Write how many lines were left out, if any were."""
        if self._left_out:
            self._log.warning(f"{self._event}, and more that are not shown", left_out=self._left_out)
            self._left_out = 0
