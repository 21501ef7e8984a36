"""A log in memory: the smallest implementation of `service.log_interface.Log`, for tests of the store over it."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock

from msgspec import Struct

from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.idempotency import LoggedDecision, find_logged_decision
from latecomer.service.durations import parse_retention
from latecomer.service.log_interface import BatchedDecision, DoneTicket, LogStatus


class MemoryRow(Struct, frozen=True):
    """A row of one commit."""

    bandit: int
    seq: int
    count: int
    rounds: int
    stamp: int
    payload: bytes

    @property
    def first(self) -> int:
        return self.seq


class MemoryLog:
    """Rows in lists; everything is durable as soon as it is appended."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.chains: dict[int, list[MemoryRow]] = {0: []}
        self.settings: dict[str, str] = {}
        self.failure: str | None = None
        self._requests: dict[tuple[int, bytes], tuple[bytes, int]] = {}

    def begin_chain(self, bandit: Bandit, created: bytes, begun: bytes) -> DoneTicket:
        self.chains[bandit.number] = []
        self._add(0, created, count=1, rounds=0, stamp=bandit.descriptor.stamp)
        return self._add(bandit.number, begun, count=1, rounds=0, stamp=0)

    def append(self, bandit: Bandit, payload: bytes, *, count: int, stamp: int, request: bytes = b"") -> DoneTicket:
        bandit.has_unlogged_change = False
        if request:
            self._requests[bandit.number, request] = (payload, bandit.rounds)
        return self._add(bandit.number, payload, count=count, rounds=bandit.rounds, stamp=stamp)

    def append_batch(self, bandit: Bandit, made: Sequence[BatchedDecision], *, stamp: int) -> DoneTicket:
        for request, round_, payload in made:
            if request:
                self._requests[bandit.number, request] = (payload, round_)
        return self.append(bandit, b"".join(data for _, _, data in made), count=len(made), stamp=stamp)

    def append_replayed(self, bandit: Bandit, payload: Payload, *, count: int, stamp: int) -> DoneTicket:
        decisions = payload.records(events.DECISION_WITH_REQUEST)
        for request, round_ in zip(decisions["request"].tolist(), decisions["round"].tolist(), strict=True):
            self._requests[bandit.number, request] = (payload.to_bytes(), round_)
        return self.append(bandit, payload.to_bytes(), count=count, stamp=stamp)

    def append_registry_event(self, payload: bytes, *, stamp: int) -> DoneTicket:
        return self._add(0, payload, count=1, rounds=0, stamp=stamp)

    def delete_chain(self, number: int, deleted: bytes, *, stamp: int) -> DoneTicket:
        self.chains.pop(number, None)
        return self.append_registry_event(deleted, stamp=stamp)

    def _add(self, number: int, payload: bytes, *, count: int, rounds: int, stamp: int) -> DoneTicket:
        if payload:
            chain = self.chains[number]
            chain.append(MemoryRow(number, len(chain) + 1, count, rounds, stamp, payload))
        return DoneTicket()

    def wait(self, ticket: object, timeout: float | None = None) -> None: ...

    async def wait_async(self, ticket: object) -> None: ...

    def resolve_when_done(self, ticket: object, futures: list[asyncio.Future[None]]) -> None:
        for future in futures:
            future.set_result(None)

    def flush_now(self) -> None: ...

    def group(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read_rows(self, number: int) -> Iterator[MemoryRow]:
        return iter(list(self.chains.get(number, ())))

    def read_rows_from(self, number: int, round: int) -> Iterator[MemoryRow]:
        return iter([row for row in self.chains.get(number, ()) if row.rounds >= round])

    def read_secrets(self, number: int) -> list[tuple[int, bytes]]:
        return []

    def find_decision(self, bandit: Bandit, request: bytes) -> tuple[LoggedDecision, DoneTicket] | None:
        if (bandit.number, request) not in self._requests:
            return None
        payload, round_ = self._requests[bandit.number, request]
        found = find_logged_decision(payload, bandit.dim, round_)
        return None if found is None else (found, DoneTicket())

    def save_all(self, bandits: Iterable[Bandit], *, now: int) -> None: ...

    def read_setting(self, name: str, default: str) -> str:
        return self.settings.get(name, default)

    def write_setting(self, name: str, value: str) -> None:
        self.settings[name] = value

    @property
    def retention(self) -> int | None:
        return parse_retention(self.read_setting("retention", "7d"))

    def set_retention(self, text: str) -> None:
        self.write_setting("retention", text)

    def find_fault(self) -> str | None:
        return None

    def get_status(self) -> LogStatus:
        rows = [row for chain in self.chains.values() for row in chain]
        sizes = sum(len(row.payload) for row in rows)
        return LogStatus(self.failure, None, len(rows), sum(row.count for row in rows), sizes, 0.0)

    def listen(
        self,
        *,
        on_commit: Callable[[int, int, float], None],
        on_trouble: Callable[[str | None], None],
        on_death: Callable[[], object],
    ) -> None: ...

    def close(self) -> None: ...
