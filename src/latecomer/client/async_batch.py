"""Batches of conversions for coroutines."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self

from latecomer.client.batch import check_limits, leave_out, make_conversion
from latecomer.errors import InputError, LatecomerError
from latecomer.service.bandit.verdict_list import VerdictList, warn_of
from latecomer.service.messages import Conversion, DecisionAnswer, Verdict
from latecomer.timestamps import Moment


class AsyncConversionBatch:
    """A `ConversionBatch` for the coroutines of one loop."""

    def __init__(
        self, send: Callable[[list[Conversion]], Awaitable[VerdictList]], *, size: int, seconds: float
    ) -> None:
        check_limits(size, seconds)
        self.verdicts: Counter[Verdict] = Counter()
        self.warnings: Counter[str] = Counter()
        self.refused: list[InputError] = []
        self._send, self._size, self._seconds = send, size, seconds
        self._waiting: list[Conversion] = []
        self._flush_lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def convert(
        self,
        decision_id: DecisionAnswer | str,
        *,
        value: float | None = None,
        occurred_at: Moment | None = None,
        conversion_id: str | None = None,
    ) -> None:
        """Report a conversion, soon."""
        self._waiting.append(make_conversion(decision_id, value, occurred_at, conversion_id))
        if len(self._waiting) >= self._size:
            await self.flush()

    async def flush(self) -> None:
        """Send what is waiting, now."""
        async with self._flush_lock:
            sending, self._waiting = self._waiting, []
            if not sending:
                return
            try:
                found = await self._send_or_leave_out(sending)
            except BaseException:
                self._waiting = sending + self._waiting
                raise
            self.verdicts.update(found)
            self.warnings.update(warning.code for warning in found.warnings)

    async def _send_or_leave_out(self, sending: list[Conversion]) -> VerdictList:
        while sending:
            try:
                return await self._send(sending)
            except InputError as error:
                leave_out(sending, error)
                self.refused.append(error)
        return VerdictList()

    async def _flush_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            with suppress(LatecomerError):  # they still wait, and the end of `async with` raises
                await self.flush()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._flush_periodically())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.flush()
        warn_of(self.warnings, stacklevel=3)
        if self.refused:
            raise self.refused[0]
