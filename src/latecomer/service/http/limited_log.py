"""A log for what strangers can cause: a flood of it does not fill the disk."""

import asyncio
from time import monotonic
from typing import Any

from latecomer.service.http.logging_setup import Log

_MOST = 20
_SECONDS = 60.0


class LimitedLog:
    """Writes at most so many lines in so many seconds, and then how many it left out."""

    def __init__(self, log: Log, *, most: int = _MOST, seconds: float = _SECONDS) -> None:
        self._log, self._most, self._seconds = log, most, seconds
        self._start, self._written = -seconds, 0
        self._event, self._left_out = "", 0

    def warn(self, event: str, **fields: Any) -> None:
        """Write a line, if there is room for it."""
        now = monotonic()
        if not self._left_out and now - self._start >= self._seconds:
            self._start, self._written = now, 0
        if self._written < self._most:
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
