"""The calls on one bandit that wait: in the queue, in the commit under way, or for a row whose end is not known."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from latecomer.errors import LatecomerError, StoreError
from latecomer.service.storage.postgres.calls import PendingCall

PATIENCE = 5.0
"""Seconds that a call waits for its commit."""
_MAX_CALLS = 1024
"""Calls in a commit, at most."""


class CallQueue:
    """Calls in their order. A call is answered once, whatever happens to it."""

    def __init__(self) -> None:
        self._waiting: deque[PendingCall] = deque()
        self._running: list[PendingCall] = []
        self.unlogged: list[PendingCall] = []
        """Calls whose answers are in a row that may be in the log."""
        self.refreshes: list[asyncio.Future[None]] = []
        """Futures of those who wait for the rows of other replicas."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, call: PendingCall) -> None:
        """Add a call at the end."""
        self._waiting.append(call)

    def list_requests(self) -> set[bytes]:
        """Return the digests of the request ids of the calls that wait."""
        return {call.work.lookup for call in self._waiting if call.work.lookup}

    def take(self) -> list[PendingCall]:
        """Take the calls of a commit: those that somebody still waits for."""
        while self._waiting and len(self._running) < _MAX_CALLS:
            call = self._waiting.popleft()
            if not call.future.done():
                self._running.append(call)
        return self._running

    def answer_running(self) -> None:
        """Answer the calls of a commit that have been run."""
        for call in self._running:
            if call.answer is not None:
                call.resolve()

    def end_commit(self) -> None:
        """Put the calls of a commit that were not run, or whose changes are lost, back to be run again."""
        kept = set(map(id, self.unlogged))
        self.put_back([call for call in self._running if id(call) not in kept])
        self._running = []

    def answer_unlogged(self) -> None:
        """Answer the calls whose row is in the log after all."""
        for call in self.unlogged:
            call.resolve()
        self.unlogged = []

    def put_back_unlogged(self) -> None:
        """Put the calls back whose row will never be in the log."""
        calls, self.unlogged = self.unlogged, []
        self.put_back(calls)

    def fail_unlogged(self) -> None:
        """Give the calls up whose row may be in the log: running them again could make it two."""
        for call in self.unlogged:
            call.fail(StoreError("whether the log has it is not known: ask again, with the same request id"))
        self.unlogged = []

    def put_back(self, calls: Sequence[PendingCall]) -> None:
        """Put calls that are not answered yet at the head of the queue."""
        for call in reversed(calls):
            if not call.future.done():
                call.answer = None
                self._waiting.appendleft(call)

    def expire(self, now: float, reason: str) -> None:
        """Give up calls that have waited too long: whether they will be in the log is not known."""
        for call in self._all():
            if now - call.submitted > PATIENCE:
                call.fail(StoreError(reason))
        while self._waiting and self._waiting[0].future.done():
            self._waiting.popleft()

    def fail_all(self, error: LatecomerError) -> None:
        """Give an error to all who wait."""
        for call in self._all():
            call.fail(error)
        self._waiting.clear()
        for waiting in self.refreshes:
            if not waiting.done():
                waiting.set_exception(error)
        self.refreshes = []

    def _all(self) -> Iterable[PendingCall]:
        return [*self._waiting, *self._running, *self.unlogged]
