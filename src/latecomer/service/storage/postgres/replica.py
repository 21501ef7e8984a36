"""The shared parts of one replica: connections, settings, totals, and whether the database answers."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import ParamSpec, TypeVar

from latecomer.service.log_interface import LogStatus
from latecomer.service.storage.listeners import Listeners
from latecomer.service.storage.postgres.address import hide_secrets
from latecomer.service.storage.postgres.pool import ConnectionPool

_THREADS = 4
"""Bandits that are read at the same time, at most."""
P = ParamSpec("P")
R = TypeVar("R")


class Replica:
    """The shared parts of a replica. Only its event loop uses them.

    Parameters
    ----------
    address
        The database.
    snapshot_every
        Events of a bandit, of all replicas together, after which a snapshot is due.
    reading_seconds
        Seconds of processor time that reading the events since a snapshot may take, about, before another is due.
    connections
        The number of connections that requests use, at most.
    """

    def __init__(self, address: str, *, snapshot_every: int, reading_seconds: float, connections: int) -> None:
        self.address, self.snapshot_every, self.reading_seconds = address, snapshot_every, reading_seconds
        self.pool = ConnectionPool(address, connections)
        self.settings_pool = ConnectionPool(address, 1)
        """For settings and keys: they are read even while every connection of the others waits for a lock."""
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bandits")
        self.retention: int | None = None
        self.failure: str | None = None
        """The reason why the database does not answer; None where it does."""
        self.detail = ""
        """The failure with its address and error, for the log alone: anybody may ask whether a server is ready."""
        self.failing_since = 0.0
        self.snapshot_failure: str | None = None
        self.stopping = Event()
        """Set when the replica closes: work in threads that can be done later is given up."""
        self.listeners = Listeners()
        self.on_deleted: Callable[[int], None] = lambda _: None
        self._commits, self._events, self._bytes, self._seconds = 0, 0, 0, 0.0

    async def run_in_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Read or make a bandit in a thread that nothing else keeps busy: snapshots and reports have others."""
        call = partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def close(self) -> None:
        """Close the connections that nobody uses, and end the threads when they have read."""
        await self.drop_idle()
        self._threads.shutdown(wait=False)

    async def report_failure(self, error: Exception) -> None:
        """Note that the database has not answered, and drop connections that may be broken too."""
        reason = " ".join(str(error).split()) or type(error).__name__
        self.detail = f"{hide_secrets(self.address)} does not answer: {reason}"
        if self.failure is None:
            self.failing_since = time.monotonic()
            self.listeners.report_trouble(self.detail)
        self.failure = "the database does not answer: nothing new is decided or credited until it does"
        await self.drop_idle()

    async def drop_idle(self) -> None:
        """Close the connections that nobody uses."""
        await self.pool.drop_idle()
        await self.settings_pool.drop_idle()

    def report_success(self) -> None:
        """Note that the database has answered."""
        if self.failure is not None:
            self.failure = None
            self.listeners.report_trouble(None)

    def report_commit(self, events: int, size: int, seconds: float) -> None:
        """Count a commit."""
        self._commits, self._events, self._bytes = self._commits + 1, self._events + events, self._bytes + size
        self._seconds += seconds
        self.listeners.report_commit(events, size, seconds)

    def get_status(self) -> LogStatus:
        """Return the state and the totals since the start."""
        return LogStatus(self.failure, self.snapshot_failure, self._commits, self._events, self._bytes, self._seconds)
