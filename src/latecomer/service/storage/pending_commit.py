"""A pending commit: the events that it will write, and the callers that wait for it. The writer makes it."""

import asyncio
from contextlib import suppress
from typing import Any

from latecomer.errors import StoreError
from latecomer.service.storage.rows import GENESIS, Row, make_row

Heads = dict[int, tuple[int, bytes]]
"""The last row of each chain: its number and its checksum."""


class BanditEvents:
    """The events of one bandit in a commit."""

    __slots__ = ("count", "parts", "rounds", "stamp")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.count = self.rounds = self.stamp = 0

    def add(self, data: bytes, count: int, rounds: int, stamp: int) -> None:
        """Add events."""
        self.parts.append(data)
        self.count += count
        self.rounds, self.stamp = rounds, stamp


class Commit:
    """The events of one transaction, and the callers that wait for it. Callers get it as their ticket."""

    __slots__ = ("by_bandit", "done", "has_waiting_threads", "pending_requests", "waiters")

    def __init__(self, *, done: bool = False) -> None:
        self.by_bandit: dict[int, BanditEvents] = {}
        self.waiters: list[asyncio.Future[None]] = []
        self.has_waiting_threads = False
        self.done = done
        self.pending_requests: list[tuple[dict[bytes, Any], bytes]] = []
        """Requests that are found in memory until their row can be read: a dictionary, and the key in it."""

    def count_events(self) -> int:
        """Count the events so far."""
        return sum(events.count for events in list(self.by_bandit.values()))


def make_rows(commit: Commit, heads: Heads) -> list[Row]:
    """Make a row for each bandit, after the last of its chain."""
    rows = []
    for bandit, part in commit.by_bandit.items():
        seq, parent = heads.get(bandit, (0, GENESIS))
        data = b"".join(part.parts)
        rows.append(
            make_row(
                bandit, seq + 1, count=part.count, rounds=part.rounds, stamp=part.stamp, parent=parent, payload=data
            )
        )
    return rows


def wake_waiters(waiters: list[asyncio.Future[None]], failure: str | None) -> None:
    """Resolve futures from another thread, with one call to each event loop; a failure becomes a `StoreError`."""
    loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for waiter in waiters:
        loops.setdefault(waiter.get_loop(), []).append(waiter)
    for loop, futures in loops.items():
        with suppress(RuntimeError):  # the loop has been closed, and nobody waits
            loop.call_soon_threadsafe(resolve, futures, failure)


def resolve(futures: list[asyncio.Future[None]], failure: str | None) -> None:
    """Resolve futures of the running loop; a failure becomes a `StoreError`."""
    for future in futures:
        if future.done():
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(StoreError(failure))
