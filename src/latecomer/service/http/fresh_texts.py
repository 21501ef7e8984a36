"""Texts that are made again once they are old, and shared by everybody who asks meanwhile.

Making one takes at most about 2 % of a processor, however many browsers watch.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

LEAST_SECONDS, MOST_SECONDS = 0.5, 10.0
FACTOR = 50.0
"""A text is kept for so many times the processor time that it took, within these bounds."""
Make = Callable[[], Awaitable[tuple[str, float]]]
"""Returns a text, and the seconds of processor time that it took."""


class FreshTexts:
    """Texts by name, on one event loop; `clock` returns seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, str]] = {}
        self._making: dict[str, asyncio.Task[str]] = {}

    async def get(self, name: str, make: Make) -> str:
        """Return the text that is kept, or have it made; calls at the same time share one."""
        kept = self._kept.get(name)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        task = self._making.get(name)
        if task is None:
            task = self._making[name] = asyncio.create_task(self._make(name, make))
            task.add_done_callback(lambda _: self._making.pop(name, None))
        return await asyncio.shield(task)

    async def _make(self, name: str, make: Make) -> str:
        text, cost = await make()
        now = self._clock()
        self._kept = {other: kept for other, kept in self._kept.items() if kept[0] > now}
        self._kept[name] = now + min(max(FACTOR * cost, LEAST_SECONDS), MOST_SECONDS), text
        return text
