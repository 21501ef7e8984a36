"""The commits that are not on disk yet: the open one, which takes events, those before it, and who waits for them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from latecomer.errors import StoreError
from latecomer.service.storage.pending_commit import BanditEvents, Commit, resolve, wake_waiters
from latecomer.service.storage.rows import check_numbers


class OpenCommits:
    """Commits shared by callers and the writer's thread.

    It has a lock of its own, which is held for a moment, and may be taken with the store's lock held, not the other way
    round: a batch that is being decided holds up the answers of no other.

    Parameters
    ----------
    failure
        The reason why nothing can be written now; None where something can.
    """

    def __init__(self, failure: str | None) -> None:
        self.failure = failure
        self._changed = Condition()
        self._open = Commit()
        self._waiting: list[Commit] = []
        self._in_group = False
        self._grouped: Commit | None = None
        """The commit that the group in progress has appended to."""

    # ---- for the store, with its lock held ----

    def append(self, bandit: int, data: bytes, *, count: int, rounds: int, stamp: int) -> tuple[Commit, bool]:
        """Add events to the open commit; return it, and whether they are its first."""
        check_numbers(count, rounds, stamp)
        with self._changed:
            commit = self._open
            is_new = not commit.by_bandit
            events = commit.by_bandit.get(bandit)
            if events is None:
                events = commit.by_bandit[bandit] = BanditEvents()
            events.add(data, count, rounds, stamp)
            if is_new:
                self._waiting.append(commit)
            if self._in_group:
                self._grouped = commit
        return commit, is_new

    def begin_next(self) -> None:
        """Begin another commit, unless the open one has no events."""
        with self._changed:
            if self._open.by_bandit:
                self._open = Commit()

    @contextmanager
    def group(self) -> Iterator[None]:
        """Keep the commit that is appended to from being written before the end."""
        self._in_group = True
        try:
            yield
        finally:
            with self._changed:
                self._in_group, self._grouped = False, None
                self._changed.notify_all()

    # ---- waiting ----

    def resolve_when_done(self, ticket: Commit, futures: list[asyncio.Future[None]]) -> None:
        """Have futures of the running loop resolved when the ticket is on disk; `StoreError` where that fails."""
        with self._changed:
            if ticket.done or self.failure:
                resolve(futures, None if ticket.done else self.failure)
            else:
                ticket.waiters += futures

    def wait(self, ticket: Commit, timeout: float | None = None) -> None:
        """Wait in a thread until the ticket is on disk; `StoreError` where that fails."""
        if ticket.done:
            return
        with self._changed:
            ticket.has_waiting_threads = True
            if not self._changed.wait_for(lambda: ticket.done or self.failure, timeout):
                raise StoreError(f"the log was not written within {timeout} s: try again, with the same request id")
            if not ticket.done and self.failure:
                raise StoreError(self.failure)

    # ---- for the writer's thread ----

    def close(self, commit: Commit) -> None:
        """Wait for the end of a group that has appended to a commit, and let nobody append to it any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._grouped is not commit)
            if commit is self._open:
                self._open = Commit()

    def finish(self, commit: Commit) -> bool:
        """Tell those who wait that a commit is on disk; return whether a failure has ended with it."""
        for table, key in commit.pending_requests:
            table.pop(key, None)
        with self._changed:
            commit.done = True
            recovered, self.failure = self.failure is not None, None
            self._waiting.remove(commit)
            if commit.has_waiting_threads:
                self._changed.notify_all()
        wake_waiters(commit.waiters, None)
        return recovered

    def fail(self, failure: str) -> bool:
        """Tell everybody who waits of a failure; return whether it is a new one."""
        with self._changed:
            is_new, self.failure = self.failure is None, failure
            waiters = [waiter for commit in self._waiting for waiter in commit.waiters]
            for commit in self._waiting:
                commit.waiters = []
            self._changed.notify_all()
        wake_waiters(waiters, failure)
        return is_new
