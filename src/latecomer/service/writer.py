"""The writer: one thread that owns the writing connection. What gathers while it commits is the next commit.

A batch is all that was decided and reported since the last one was taken: one row for each bandit, one transaction, one
wait for the disk. Where a commit fails, nothing is taken back: those who wait are told, changes are refused, and the
same batch is tried again until it is in the log.
"""

import asyncio
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Condition, Event, RLock, Thread

import apsw

from latecomer.errors import FileError, StoreError
from latecomer.service.chores import Chores, Work, roll_back
from latecomer.service.log import GENESIS, Row, append, sealed
from latecomer.service.messages import Health
from latecomer.service.waking import tell

Heads = dict[int, tuple[int, bytes]]
"""The latest row of each chain: its number and its checksum."""
OnCommit = Callable[[int, int, float], None]
"""Its events, bytes and seconds."""
Prepare = Callable[[], apsw.Connection]
OnTrouble = Callable[[str | None], None]
"""Why commits fail, or None once they do no longer."""
_FEW = 4
"""Events in a batch of a desk that is not busy."""


class Segment:
    """One bandit's part of a batch."""

    __slots__ = ("count", "parts", "rounds", "stamp")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.count = self.rounds = self.stamp = 0


class Batch:
    """What one commit writes, and who waits for it. To others it is a ticket."""

    __slots__ = ("asked", "done", "segments", "threads", "waiters")

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self.waiters: list[asyncio.Future[None]] = []
        self.threads = False
        self.done = False
        self.asked: list[tuple[dict[bytes, object], bytes]] = []
        """Answers kept in memory until they can be read from the log: a table, and the key in it."""


def on_disk() -> Batch:
    """A ticket for what is there already."""
    ticket = Batch()
    ticket.done = True
    return ticket


class Writer:
    """Commits batches in order, and does chores between them.

    Parameters
    ----------
    connection
        The one that writes; from now on this thread's alone.
    lock
        What guards the open batch: the desk's own.
    heads
        The latest row of each chain.
    retry
        Seconds between two attempts at a commit that fails.
    prepare, failure
        What has to succeed first, and why it could not yet, on a full disk; it gives the connection to write with.
    gather
        Seconds that a busy desk's batch is left to grow: every commit costs a hand-over of Python's lock. Where the
        last batch had but a few events, nobody waits.
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
    ) -> None:
        self.heads = heads
        self.failure: str | None = None if failure is None else _refusal(failure)
        self._prepare = prepare
        self.commits, self.events, self.bytes, self.seconds = 0, 0, 0, 0.0
        self.on_commit: OnCommit | None = None
        self.on_trouble: OnTrouble | None = None
        self._connection = connection
        self._lock = self.lock = lock
        self._changed = Condition(lock)
        self._retry, self._gather, self._latest = retry, gather, 0
        self._open = Batch()
        self._uncommitted: list[Batch] = []
        self._queue: SimpleQueue[Batch | Work | None] = SimpleQueue()
        self.chores = Chores(connection)
        """For this thread; others may ask what failed."""
        self._stopping = False
        self._hurried = Event()
        self.hurry = self._hurried.set
        """Commit now: nobody else can come. For callers that know how many they are."""
        self._thread = Thread(target=self._run, name="latecomer-writer", daemon=True)
        self._thread.start()

    # ---- for the desk, with its lock held ----

    def append(self, bandit: int, data: bytes, *, count: int, rounds: int, stamp: int) -> Batch:
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

    def cut(self, work: Work) -> None:
        """Begin a batch, and have a chore begun when all that came before is on disk and nothing that comes after."""
        if self._open.segments:
            self._open = Batch()
        self._queue.put(work)

    # ---- waiting ----

    async def durable(self, ticket: Batch) -> None:
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

    def wait(self, ticket: Batch, timeout: float | None = None) -> None:
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

    def health(self, *, lost: str, clock_offset: float) -> Health:
        """How it does; `lost` is why nothing more may be written, where that is so."""
        return Health(
            failure=lost or self.failure,
            snapshot_failure=self.chores.failure,
            commits=self.commits,
            events=self.events,
            bytes=self.bytes,
            commit_seconds=self.seconds,
            clock_offset=clock_offset,
        )

    # ---- the thread ----

    def _run(self) -> None:
        try:
            if self._is_prepared():
                self._work()
        except BaseException as error:
            self._fail(error)  # whoever waits must hear of it
            raise

    def _is_prepared(self) -> bool:
        """Prepare, however many attempts it takes; False where the desk is closed before that."""
        while self._prepare is not None:
            try:
                self._connection, self._prepare = self._prepare(), None
            except (apsw.Error, OSError, FileError) as error:
                self._fail(error)
                if self._stopping:
                    return False
                time.sleep(self._retry)
                continue
            self.chores, self.failure = Chores(self._connection), None
            if self.on_trouble:
                self.on_trouble(None)
        return True

    def _work(self) -> None:
        while True:
            try:
                work = self._queue.get(timeout=self.chores.pause())
            except Empty:
                self.chores.advance_any()
                continue
            if work is None:
                break
            if isinstance(work, Work):
                self.chores.add(work)
            elif not self._commit(work):
                return
            self.chores.advance()
        self.chores.finish()

    def _commit(self, batch: Batch) -> bool:
        """Commit, however many attempts it takes; False where the desk is being closed and it cannot be done."""
        if self._latest > _FEW:
            self._hurried.wait(self._gather)
            self._hurried.clear()
        with self._lock:
            if batch is self._open:
                self._open = Batch()
        began = time.perf_counter()
        rows = [
            sealed(bandit, seq + 1, count=part.count, rounds=part.rounds, stamp=part.stamp, before=before, payload=data)
            for bandit, part in batch.segments.items()
            for seq, before in (self.heads.get(bandit, (0, GENESIS)),)
            for data in (b"".join(part.parts),)
        ]
        while True:
            try:
                self._write(rows)
                break
            except (apsw.Error, OSError) as error:
                roll_back(self._connection)
                self._fail(error)
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

    def _finish(self, batch: Batch, events: int, size: int, seconds: float) -> None:
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
        if recovered and self.on_trouble:
            self.on_trouble(None)
        if self.on_commit:
            self.on_commit(events, size, seconds)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            is_news = self.failure is None
            self.failure = _refusal(error)
            waiters = [waiter for batch in self._uncommitted for waiter in batch.waiters]
            for batch in self._uncommitted:
                batch.waiters = []
            self._changed.notify_all()
        tell(waiters, self.failure)
        if is_news and self.on_trouble:
            self.on_trouble(self.failure)


def _refusal(error: BaseException) -> str:
    return f"the log cannot be written: {error}; nothing new is decided or credited until it can"
