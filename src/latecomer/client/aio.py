"""`latecomer.AsyncClient`: a server's bandits from a coroutine; the calls of `Client`, awaited."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar

import httpx

from latecomer.client import protocol as calls
from latecomer.client.batch import checked, checked_limits
from latecomer.durations import Span
from latecomer.errors import LatecomerError, ServiceError
from latecomer.service.bandit.verdicts import VerdictList, warn_of
from latecomer.service.feature_values import FeatureRow
from latecomer.service.messages import (
    BanditInfo,
    BanditStats,
    Conversion,
    DecisionAnswer,
    Revocation,
    Verdict,
    decision_id_of,
)
from latecomer.timestamps import Moment, parse_datetime

T = TypeVar("T")


class AsyncClient:
    """A server, over HTTP, with the arguments and the calls of `Client`. It is closed by `async with`."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, retries: int = 6) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.AsyncClient(base_url=calls.base_url(url), headers=headers, timeout=timeout)
        self._timeout, self._retries = timeout, retries
        self._shown_url = calls.without_secrets(calls.base_url(url))

    def __repr__(self) -> str:
        return f"AsyncClient({self._shown_url!r})"

    async def create(
        self,
        name: str,
        *,
        dim: int,
        window: Span,
        policy: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> BanditInfo:
        """Create a bandit; the same again changes nothing. `window`: rounds, or a time such as "7d".

        `features` declares the scales of numbers for `choose`: {"price": {"scale": 200}}.
        """
        call = calls.create(name, dim=dim, window=window, policy=policy, parameters=parameters, features=features)
        return await self._send(call)

    async def bandits(self) -> list[BanditInfo]:
        """Every bandit that the key may read."""
        return (await self._send(calls.bandits())).bandits

    async def info(self, name: str) -> BanditInfo:
        """What a bandit is."""
        return await self._send(calls.info(name))

    async def stats(self, name: str) -> BanditStats:
        """What a bandit has learnt, and what happened to it."""
        return await self._send(calls.stats(name))

    async def delete(self, name: str) -> BanditInfo | None:
        """Delete a bandit and all that it has learnt; what it was, or None where only a second try was answered."""
        return await self._send(calls.delete(name))

    async def decide(
        self, name: str, actions: calls.Actions, *, ids: Sequence[str] | None = None, request_id: str | None = None
    ) -> DecisionAnswer:
        """Choose one of the actions, rows of numbers. The same `request_id` again is the same decision."""
        return await self._send(calls.decide(name, actions, ids=ids, request_id=request_id))

    async def choose(
        self,
        name: str,
        actions: Mapping[str, FeatureRow],
        *,
        context: FeatureRow | None = None,
        request_id: str | None = None,
    ) -> DecisionAnswer:
        """Choose between actions that are known by their features: {id: {name: value}}."""
        return await self._send(calls.decide_features(name, actions, context=context, request_id=request_id))

    async def convert(
        self, name: str, decision_id: DecisionAnswer | str, *, value: float = 1.0, occurred_at: Moment | None = None
    ) -> Verdict:
        """Report a conversion; `occurred_at` as in `Client.convert`."""
        occurred = parse_datetime(occurred_at, name="occurred_at")
        return (await self._convert(name, [Conversion(decision_id_of(decision_id), value, occurred)])).warn()[0]

    async def convert_many(self, name: str, conversions: Iterable[Conversion]) -> VerdictList:
        """Report many; a verdict for each, and `warnings` about some of them."""
        return (await self._convert(name, conversions)).warn()

    async def _convert(self, name: str, conversions: Iterable[Conversion]) -> VerdictList:
        found = VerdictList()
        for part in calls.portions(conversions):
            answer = await self._send(calls.convert(name, part))
            found.append_portion(answer.verdicts, answer.warnings)
        return found

    async def revoke(
        self, name: str, decision_id: DecisionAnswer | str, *, occurred_at: Moment | None = None
    ) -> Verdict:
        """Take a conversion back."""
        occurred = parse_datetime(occurred_at, name="occurred_at")
        return (await self._send(calls.revoke(name, [Revocation(decision_id_of(decision_id), occurred)]))).verdicts[0]

    def batch(self, name: str, *, size: int = 1000, seconds: float = 0.5) -> "AsyncBatch":
        """Conversions that travel together: sent when `size` are waiting, or after `seconds`, or at the end."""
        return AsyncBatch(lambda conversions: self._convert(name, conversions), size=size, seconds=seconds)

    async def _send(self, call: calls.Call[T]) -> T:
        for tries, wait in enumerate((*calls.waits(self._retries), None)):
            try:
                answer = await self._http.request(
                    call.method,
                    call.path,
                    content=call.content,
                    headers={"Content-Type": call.kind},
                    timeout=max(self._timeout, call.patience),
                )
            except httpx.TransportError as error:
                if wait is None:
                    raise ServiceError(f"{self._shown_url} does not answer: {error!r}") from error
                await asyncio.sleep(wait)
            else:
                if wait is None or answer.status_code not in calls.PASSING:
                    return calls.result(call, answer.status_code, answer.content, is_again=tries > 0)
                await asyncio.sleep(calls.pause(wait, answer.headers))
        raise AssertionError("the last try returns or raises")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncBatch:
    """`Batch` for coroutines of one loop."""

    def __init__(
        self, send: Callable[[list[Conversion]], Awaitable[VerdictList]], *, size: int, seconds: float
    ) -> None:
        checked_limits(size, seconds)
        self.verdicts: Counter[Verdict] = Counter()
        self.warnings: Counter[str] = Counter()
        self._send, self._size, self._seconds = send, size, seconds
        self._waiting: list[Conversion] = []
        self._sending = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def convert(
        self, decision_id: DecisionAnswer | str, *, value: float = 1.0, occurred_at: Moment | None = None
    ) -> None:
        """Report a conversion, soon."""
        self._waiting.append(checked(decision_id, value, occurred_at))
        if len(self._waiting) >= self._size:
            await self.flush()

    async def flush(self) -> None:
        """Send what is waiting, now."""
        async with self._sending:
            going, self._waiting = self._waiting, []
            if not going:
                return
            try:
                found = await self._send(going)
            except BaseException:
                self._waiting = going + self._waiting
                raise
            self.verdicts.update(found)
            self.warnings.update(warning.code for warning in found.warnings)

    async def _flush_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            with suppress(LatecomerError):  # they still wait, and the end of `async with` raises
                await self.flush()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._flush_now_and_then())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.flush()
        warn_of(self.warnings, stacklevel=3)
