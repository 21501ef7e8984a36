"""The writer: one thread that owns the writing connection. What gathers while it commits is the next commit.

A batch is all that was decided and reported since the last one was taken: one row for each bandit, one transaction, one
wait for the disk. Where a commit fails, nothing is taken back: those who wait are told, changes are refused, and the
same batch is tried again until it is in the log.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Condition, Event, RLock, Thread

import apsw

from latecomer.errors import FileError, StoreError
from latecomer.service.storage.background import BackgroundJobs, Job, roll_back
from latecomer.service.storage.commit import Commit, Segment
from latecomer.service.storage.listeners import Listeners
from latecomer.service.storage.rows import GENESIS, Row, append, make_row
from latecomer.service.storage.waking import tell

Heads = dict[int, tuple[int, bytes]]
"""The latest row of each chain: its number and its checksum."""
Prepare = Callable[[], apsw.Connection]
Check = Callable[[], None]
"""Raises `FileError` where the store's files are not those that were opened."""
_FEW = 4
"""Events in a batch of a store that is not busy."""
_IDLE, _FRESH = 0.5, 0.01
"""Seconds for which a look at the store's files holds: where there is nothing to write, and where there is."""
_log = logging.getLogger(__name__)


class Writer:
    """Commits batches in order, and does chores between them.

    Parameters
    ----------
    connection
        The one that writes; from now on this thread's alone.
    lock
        What guards the open batch: the store's own.
    heads
        The latest row of each chain.
    retry
        Seconds between two attempts at a commit that fails.
    prepare, failure
        What has to succeed first, and why it could not yet, on a full disk; it gives the connection to write with.
    gather
        Seconds that a busy store's batch is left to grow: every commit costs a hand-over of Python's lock. Where the
        last batch had but a few events, nobody waits.
    check
        What is asked after a commit, before it is acknowledged, a hundred times a second at most; and now and then
        where there are none.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        lock: RLock,
        heads: Heads,
        *,
        retry: float = 0.5,
        gather: float = 0.002,
        prepare: Prepare | None = None,
        failure: Exception | None = None,
        check: Check = lambda: None,
    ) -> None:
        self.heads = heads
        self.failure: str | None = None if failure is None else _unwritable(failure)
        self._prepare = prepare
        self.death = ""
        """Why the thread has ended by itself, where it has."""
        self.commits, self.events, self.bytes, self.seconds = 0, 0, 0, 0.0
        self.listeners = Listeners()
        self._check, self._looked = check, -math.inf
        self._connection = connection
        self._lock = self.lock = lock
        self._changed = Condition(lock)
        self._retry, self._gather, self._latest = retry, gather, 0
        self._open = Commit()
        self._uncommitted: list[Commit] = []
        self._queue: SimpleQueue[Commit | Job | None] = SimpleQueue()
        self.chores = BackgroundJobs(connection)
        """For this thread; others may ask what failed."""
        self._stopping = False
        self._hurried = Event()
        self.hurry = self._hurried.set
        """Commit now: nobody else can come. For callers that know how many they are."""
        self._thread = Thread(target=self._run, name="latecomer-writer", daemon=True)
        self._thread.start()

    # ---- for the store, with its lock held ----

    def append(self, bandit: int, data: bytes, *, count: int, rounds: int, stamp: int) -> Commit:
        """Add events to the open batch; the ticket says when they are on disk."""
        batch = self._open
        segment = batch.segments.get(bandit)
        if segment is None:
            segment = batch.segments[bandit] = Segment()
            if len(batch.segments) == 1:
                self._uncommitted.append(batch)
                self._queue.put(batch)
        segment.parts.append(data)
        segment.count += count
        segment.rounds = rounds
        segment.stamp = stamp
        return batch

    def cut(self, work: Job) -> None:
        """Begin a batch, and have a chore begun when all that came before is on disk and nothing that comes after."""
        if self._open.segments:
            self._open = Commit()
        self._queue.put(work)

    # ---- waiting ----

    async def durable(self, ticket: Commit) -> None:
        """Return once the ticket is on disk; `StoreError` where that fails."""
        if ticket.done:
            return
        with self._lock:
            if ticket.done:
                return
            if self.failure:
                raise StoreError(self.failure)
            future = asyncio.get_running_loop().create_future()
            ticket.waiters.append(future)
        await future

    def wait(self, ticket: Commit, timeout: float | None = None) -> None:
        """The same for threads."""
        if ticket.done:
            return
        with self._changed:
            ticket.threads = True
            if not self._changed.wait_for(lambda: ticket.done or self.failure, timeout):
                raise StoreError(f"the log was not written within {timeout} s: try again, with the same request id")
            if not ticket.done and self.failure:
                raise StoreError(self.failure)

    def stop(self) -> None:
        """Write what is left, do the chores that are left, and end; a commit that fails is not tried again."""
        self._stopping = True
        self.hurry()
        self._queue.put(None)
        self._thread.join()

    def find_fault(self) -> str | None:
        """Return why nothing more can be written until the store is opened again, as far as can be told now."""
        if self.death or self._stopping:
            return self.death or None
        try:
            self._check()
        except FileError as error:
            return _unwritable(error)
        return None

    # ---- the thread ----

    def _run(self) -> None:
        try:
            if self._is_prepared():
                self._work()
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it was
            _log.critical("the writer has died", exc_info=error)
            self.death = f"the writer has died ({error!r}): open the store again"
            self._fail(self.death)
            self.listeners.death()

    def _is_prepared(self) -> bool:
        """Prepare, however many attempts it takes; False where the store is closed before that."""
        while self._prepare is not None:
            try:
                self._connection, self._prepare = self._prepare(), None
            except (apsw.Error, OSError, FileError) as error:
                self._fail(_unwritable(error))
                if self._stopping:
                    return False
                time.sleep(self._retry)
                continue
            self.chores, self.failure = BackgroundJobs(self._connection), None
            self.listeners.trouble(None)
        return True

    def _work(self) -> None:
        while True:
            pause = self.chores.pause()
            try:
                work = self._queue.get(timeout=_IDLE if pause is None else min(pause, _IDLE))
            except Empty:
                self.chores.advance_any()
                self._look_idly()
                continue
            if work is None:
                break
            if isinstance(work, Job):
                self.chores.add(work)
            elif not self._commit(work):
                return
            self.chores.advance()
        self.chores.finish()

    def _commit(self, batch: Commit) -> bool:
        """Commit, however many attempts it takes; False where the store is being closed and it cannot be done."""
        if self._latest > _FEW:
            self._hurried.wait(self._gather)
            self._hurried.clear()
        with self._lock:
            if batch is self._open:
                self._open = Commit()
        began = time.perf_counter()
        rows = [
            make_row(
                bandit, seq + 1, count=part.count, rounds=part.rounds, stamp=part.stamp, before=before, payload=data
            )
            for bandit, part in batch.segments.items()
            for seq, before in (self.heads.get(bandit, (0, GENESIS)),)
            for data in (b"".join(part.parts),)
        ]
        while True:
            try:
                self._write(rows)
                if time.perf_counter() - self._looked > _FRESH:
                    self._look()
                break
            except (apsw.Error, FileError, OSError) as error:
                roll_back(self._connection)
                self._fail(_unwritable(error))
                if self._stopping:
                    return False
                time.sleep(self._retry)
        for row in rows:
            self.heads[row.bandit] = (row.seq, row.link)
        events, size = sum(row.count for row in rows), sum(len(row.payload) for row in rows)
        self._latest = events
        self._finish(batch, events, size, time.perf_counter() - began)
        return True

    def _write(self, rows: list[Row]) -> None:
        """One row is a transaction by itself; each statement more would give Python's lock away once more."""
        if len(rows) == 1:
            append(self._connection, rows[0])
            return
        with self._connection:
            for row in rows:
                append(self._connection, row)

    def _finish(self, batch: Commit, events: int, size: int, seconds: float) -> None:
        with self._lock:
            batch.done = True
            recovered, self.failure = self.failure is not None, None
            self._uncommitted.remove(batch)
            waiters = batch.waiters
            for table, key in batch.asked:
                table.pop(key, None)
            if batch.threads:
                self._changed.notify_all()
            self.commits, self.events, self.bytes = self.commits + 1, self.events + events, self.bytes + size
            self.seconds += seconds
        tell(waiters, None)
        if recovered:
            self.listeners.trouble(None)
        self.listeners.commit(events, size, seconds)

    def _look(self) -> None:
        """Compare the files with what was opened."""
        self._check()
        self._looked = time.perf_counter()

    def _look_idly(self) -> None:
        """Look where there is nothing to commit: changes are refused from now on, or taken again."""
        try:
            self._look()
        except FileError as error:
            self._fail(_unwritable(error))
            return
        if self.failure is not None:  # of an earlier look: a commit that fails is tried until it does not
            self.failure = None
            self.listeners.trouble(None)

    def _fail(self, failure: str) -> None:
        with self._lock:
            is_news = self.failure is None
            self.failure = failure
            waiters = [waiter for batch in self._uncommitted for waiter in batch.waiters]
            for batch in self._uncommitted:
                batch.waiters = []
            self._changed.notify_all()
        tell(waiters, failure)
        if is_news:
            self.listeners.trouble(failure)


def _unwritable(error: Exception) -> str:
    return f"the log cannot be written: {error}; nothing new is decided or credited until it can"
