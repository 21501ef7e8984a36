"""A time limit that many tasks share: one timer for all, since a timer for each takes longer than reading a body."""

import asyncio
from typing import Any, cast

_CHECKS = 10
"""Checks for overdue tasks within the limit."""


class SharedTimeout:
    """Raises `TimeoutError` in a task that stays within `with timeout:` for so many seconds, or a tenth more."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        """By task, the earliest first."""
        self._overdue: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._deadlines[_current_task()] = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_later(self.seconds / _CHECKS, self._check)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        task = _current_task()
        self._deadlines.pop(task, None)
        if task in self._overdue:
            self._overdue.remove(task)
            if task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for task, deadline in list(self._deadlines.items()):
            if deadline > now:
                break
            del self._deadlines[task]
            self._overdue.add(task)
            task.cancel()
        self._timer = loop.call_later(self.seconds / _CHECKS, self._check) if self._deadlines else None


def _current_task() -> asyncio.Task[Any]:
    return cast(asyncio.Task[Any], asyncio.current_task())
