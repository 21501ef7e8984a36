"""The writer: one thread that owns the writing connection and commits in groups.

Events that are appended while a commit is under way make up the next commit: one row for each bandit, one transaction,
one wait for the disk. Where a commit fails, nothing is taken back: waiting callers get an error, changes are refused,
and the same commit is tried again until it is in the log.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty
from threading import Event, RLock, Thread

import apsw

from latecomer.errors import FileError
from latecomer.service.storage.background import BackgroundJobs, Job, roll_back
from latecomer.service.storage.listeners import Listeners
from latecomer.service.storage.open_commits import OpenCommits
from latecomer.service.storage.pending_commit import Commit, Heads, make_rows
from latecomer.service.storage.rows import Row, insert_row
from latecomer.service.storage.work_queue import WorkQueue

Reconnect = Callable[[], apsw.Connection]
Check = Callable[[], None]
"""Raises `FileError` where the store's files are not those that were opened."""
_FEW_EVENTS, _MANY_EVENTS = 4, 64
"""Events in a commit of a store that is not busy, and in one that need not wait for more."""
_CHECK_IDLE, _CHECK_BUSY = 0.5, 0.01
"""Seconds between two checks of the store's files: where there is nothing to write, and where there is."""
_log = logging.getLogger(__name__)


class Writer:
    """Commits in order, and runs background jobs between commits.

    Parameters
    ----------
    connection
        The connection that writes; from now on only this thread uses it.
    lock
        The store's lock, which guards the open commit.
    heads
        The last row of each chain.
    retry
        Seconds between two attempts at a commit that fails.
    reconnect, failure
        On a full disk: a function that returns a connection that can write, called until it succeeds, and the error.
    group_delay
        Seconds that a busy store's commit waits for more events, since every commit costs a hand-over of Python's lock.
        Where the last commit had only a few events, or this one has many (a batch), nobody waits.
    check
        Called after a commit, before it is acknowledged, at most a hundred times a second; and twice a second where
        there are no commits.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        lock: RLock,
        heads: Heads,
        *,
        retry: float = 0.5,
        group_delay: float = 0.002,
        reconnect: Reconnect | None = None,
        failure: Exception | None = None,
        check: Check = lambda: None,
    ) -> None:
        self.heads = heads
        self._reconnect = reconnect
        self.death = ""
        """The reason why the thread has ended by itself; empty where it has not."""
        self.commits, self.events, self.bytes, self.seconds = 0, 0, 0, 0.0
        self.listeners = Listeners()
        self._check, self._checked_at = check, -math.inf
        self._connection = connection
        self._lock = self.lock = lock
        self._retry, self._group_delay, self._last_count = retry, group_delay, 0
        self._commits = OpenCommits(None if failure is None else _describe_failure(failure))
        self.wait, self.resolve_when_done = self._commits.wait, self._commits.resolve_when_done
        self._queue = WorkQueue()
        self._in_group = False
        self.jobs = BackgroundJobs(connection)
        """Only this thread uses it; others may read `failure`."""
        self._stopping = False
        self._flush = Event()
        self.flush_now = self._flush.set
        """End the group delay: the caller knows that no more events can come."""
        self._thread = Thread(target=self._run, name="latecomer-writer", daemon=True)
        self._thread.start()

    # ---- for the store, with its lock held ----

    def append(self, bandit: int, data: bytes, *, count: int, rounds: int, stamp: int) -> Commit:
        """Add events to the open commit, and return it as the ticket."""
        commit, is_new = self._commits.append(bandit, data, count=count, rounds=rounds, stamp=stamp)
        if is_new:
            self._queue.put(commit)
        return commit

    def run_after_pending(self, job: Job) -> None:
        """Begin a job once everything appended so far is on disk, and nothing that is appended later."""
        self._commits.begin_next()
        self._queue.put(job)

    @contextmanager
    def group(self) -> Iterator[None]:
        """Append together, with the lock held: the thread is woken once, at the end, and one commit has all.

        A group within a group is a part of it.
        """
        with self._lock:
            if self._in_group:
                yield
                return
            self._in_group = True
            try:
                with self._queue.hold(), self._commits.group():
                    yield
            finally:
                self._in_group = False

    # ---- waiting ----

    @property
    def failure(self) -> str | None:
        """The reason why nothing can be written now; None where something can."""
        return self._commits.failure

    async def wait_async(self, ticket: Commit) -> None:
        """Wait on an event loop until the ticket is on disk; `StoreError` where that fails."""
        if not ticket.done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.resolve_when_done(ticket, [future])
            await future

    def stop(self) -> None:
        """Commit what is left, finish the jobs, and end the thread; a commit that fails is not tried again."""
        self._stopping = True
        self.flush_now()
        with self._lock:
            self._queue.put(None)
        self._thread.join()

    def find_fault(self) -> str | None:
        """Return why nothing can be written until the store is opened again; None where something can."""
        if self.death or self._stopping:
            return self.death or None
        try:
            self._check()
        except FileError as error:
            return _describe_failure(error)
        return None

    # ---- the thread ----

    def _run(self) -> None:
        try:
            if self._connect():
                self._work()
        except BaseException as error:  # noqa: BLE001 - waiting callers must get an error, whatever it was
            _log.critical("the writer has died", exc_info=error)
            self.death = f"the writer has died ({error!r}): open the store again"
            self._fail(self.death)
            self.listeners.report_death()

    def _connect(self) -> bool:
        """Reconnect where that is needed, however many attempts it takes; False where the store closes before."""
        while self._reconnect is not None:
            try:
                self._connection, self._reconnect = self._reconnect(), None
            except (apsw.Error, OSError, FileError) as error:
                self._fail(_describe_failure(error))
                if self._stopping:
                    return False
                time.sleep(self._retry)
                continue
            self.jobs, self._commits.failure = BackgroundJobs(self._connection), None
            self.listeners.report_trouble(None)
        return True

    def _work(self) -> None:
        while True:
            pause = self.jobs.compute_pause()
            try:
                work = self._queue.get(timeout=_CHECK_IDLE if pause is None else min(pause, _CHECK_IDLE))
            except Empty:
                self.jobs.advance_any()
                self._check_idle()
                continue
            if work is None:
                break
            if isinstance(work, Job):
                self.jobs.add(work)
            elif not self._commit(work):
                return
            self.jobs.advance()
        self.jobs.finish()

    def _commit(self, commit: Commit) -> bool:
        """Commit, however many attempts it takes; False where it fails and the store is closing."""
        if self._last_count > _FEW_EVENTS and commit.count_events() < _MANY_EVENTS:
            self._flush.wait(self._group_delay)
        self._flush.clear()
        self._commits.close(commit)
        began = time.perf_counter()
        rows = make_rows(commit, self.heads)
        while True:
            try:
                self._write(rows)
                if time.perf_counter() - self._checked_at > _CHECK_BUSY:
                    self._check_files()
                break
            except (apsw.Error, FileError, OSError) as error:
                roll_back(self._connection)
                self._fail(_describe_failure(error))
                if self._stopping:
                    return False
                time.sleep(self._retry)
        for row in rows:
            self.heads[row.bandit] = (row.seq, row.link)
        events, size = sum(row.count for row in rows), sum(len(row.payload) for row in rows)
        self._last_count = events
        self._finish(commit, events, size, time.perf_counter() - began)
        return True

    def _write(self, rows: list[Row]) -> None:
        """Write rows in one transaction; one row needs no BEGIN, and each statement would release Python's lock."""
        if len(rows) == 1:
            insert_row(self._connection, rows[0])
            return
        with self._connection:
            for row in rows:
                insert_row(self._connection, row)

    def _finish(self, commit: Commit, events: int, size: int, seconds: float) -> None:
        self.commits, self.events, self.bytes = self.commits + 1, self.events + events, self.bytes + size
        self.seconds += seconds
        recovered = self._commits.finish(commit)
        if recovered:
            self.listeners.report_trouble(None)
        self.listeners.report_commit(events, size, seconds)

    def _check_files(self) -> None:
        """Check that the store's files are those that were opened."""
        self._check()
        self._checked_at = time.perf_counter()

    def _check_idle(self) -> None:
        """Check the files where there is nothing to commit; from now on changes are refused, or accepted again."""
        try:
            self._check_files()
        except FileError as error:
            self._fail(_describe_failure(error))
            return
        if self.failure is not None:  # from an earlier check: a commit that fails is tried until it succeeds
            self._commits.failure = None
            self.listeners.report_trouble(None)

    def _fail(self, failure: str) -> None:
        if self._commits.fail(failure):
            self.listeners.report_trouble(failure)


def _describe_failure(error: Exception) -> str:
    return f"the log cannot be written: {error}; nothing new is decided or credited until it can"
