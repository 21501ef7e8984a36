"""A time limit for what many requests do at once: one timer for all, for one each takes longer than reading does."""

import asyncio
from typing import Any, cast

_LOOKS = 10
"""How often overdue ones are looked for, within the limit."""


class SharedTimeout:
    """Who awaits within `with patience:` is given up after so many seconds, or a tenth more, with a `TimeoutError`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        """The earliest first."""
        self._overdue: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._deadlines[_this()] = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_later(self.seconds / _LOOKS, self._look)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        task = _this()
        self._deadlines.pop(task, None)
        if task in self._overdue:
            self._overdue.remove(task)
            if task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for task, deadline in list(self._deadlines.items()):
            if deadline > now:
                break
            del self._deadlines[task]
            self._overdue.add(task)
            task.cancel()
        self._timer = loop.call_later(self.seconds / _LOOKS, self._look) if self._deadlines else None


def _this() -> asyncio.Task[Any]:
    return cast(asyncio.Task[Any], asyncio.current_task())
