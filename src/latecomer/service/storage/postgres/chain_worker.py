"""One bandit on one replica: its state as of some row, and the queue of calls that wait to be run on the whole state.

A commit locks the chain's head, applies the rows of other replicas, runs the calls that have gathered, appends their
events as one row and commits; then the calls are answered. A row whose commit failed, or whose end was not seen, stays
`unlogged`: the next lock shows whether it is in the log, whether it can still be appended, or whether another replica
was faster; in that case the state is read anew, and the calls that still wait are run again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection

from latecomer.errors import DamagedFileError, FileError, LatecomerError, StoreError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.bandit.idempotency import LoggedDecision, find_logged_decision
from latecomer.service.bandit.registry import make_unknown_error
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.postgres.calls import Decide, PendingCall
from latecomer.service.storage.postgres.maintenance import SnapshotWriter, load_bandit
from latecomer.service.storage.postgres.replica import Replica
from latecomer.service.storage.postgres.statements import (
    TAIL,
    Head,
    Locked,
    commit_row,
    lock_chain,
    read_row_of,
    read_tail,
)
from latecomer.service.storage.recovery import apply_rows
from latecomer.service.storage.rows import Row, check_chain, make_row, make_row_error

PATIENCE = 5.0
"""Seconds that a call waits for its commit."""
_RUN_SECONDS = 0.2
"""How long calls are run under one lock, about: well below the time after which PostgreSQL ends the session."""
_MAX_CALLS = 1024
"""Calls in a commit, at most."""
_PAUSES = (0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts, after the first failures."""
DATABASE_ERRORS = (psycopg.Error, OSError, TimeoutError)


class UnloggedRow(Struct):
    """A row that was made and is not known to be in the log, and the calls that it answers."""

    row: Row
    calls: list[PendingCall]
    requests: list[tuple[bytes, int]]


class BanditDeletedError(Exception):
    """The bandit has been deleted."""


class ChainWorker:
    """Runs the calls of one bandit, in a task of its own.

    Parameters
    ----------
    replica
        What the bandits of a replica share: connections, settings, totals.
    descriptor
        The bandit.
    loaded
        Its state and the last row, where it has just been created; it is read from the database otherwise.
    """

    def __init__(
        self, replica: Replica, descriptor: BanditDescriptor, loaded: tuple[Bandit, Chain, Head] | None = None
    ) -> None:
        self._replica, self.descriptor = replica, descriptor
        self.number, self.name = descriptor.number, descriptor.name
        self.bandit: Bandit | None = None
        self._chain: Chain
        self._head: tuple[int, bytes]
        """The last row that is in the log for certain; `_unlogged` comes after it."""
        if loaded is not None:
            self.bandit, self._chain, head = loaded
            self._head = head.seq, head.checksum
        self._queue: deque[PendingCall] = deque()
        self._running: list[PendingCall] = []
        self._refreshes: list[asyncio.Future[None]] = []
        self._unlogged: UnloggedRow | None = None
        self._wake = asyncio.Event()
        self.damage = ""
        """The damage of its rows: it is quarantined."""
        self._is_behind = loaded is None
        self._snapshots = SnapshotWriter(replica, descriptor)
        self._failures, self._is_stopping = 0, False
        self._task = asyncio.create_task(self._run(), name=f"chain {self.number}")
        self._wake.set()

    @property
    def is_loaded(self) -> bool:
        """True once the state has been read."""
        return self.bandit is not None or bool(self.damage)

    @property
    def seq(self) -> int:
        """The last commit that this replica has applied."""
        return self._head[0] if self.bandit is not None else 0

    # ---- calls ----

    def submit(self, call: PendingCall) -> None:
        """Run a call with the next commit."""
        self._queue.append(call)
        self._wake.set()

    async def refresh(self) -> Bandit:
        """Apply everything that was committed before this call; return the bandit."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refreshes.append(waiting)
        self._wake.set()
        try:
            async with asyncio.timeout(PATIENCE):
                await waiting
        except TimeoutError:
            raise StoreError(self._replica.failure or f"the database did not answer within {PATIENCE} s") from None
        assert self.bandit is not None  # noqa: S101 - the refresh has loaded it
        return self.bandit

    def follow(self) -> None:
        """Apply the rows of other replicas soon."""
        self._is_behind = True
        self._wake.set()

    def expire(self, now: float, reason: str) -> None:
        """Give up calls that have waited too long: whether they will be in the log is not known."""
        for call in [*self._queue, *self._running, *(self._unlogged.calls if self._unlogged else ())]:
            if now - call.submitted > PATIENCE:
                call.fail(StoreError(reason))
        while self._queue and self._queue[0].future.done():
            self._queue.popleft()

    async def stop(self) -> None:
        """Run the calls that wait, if the database answers, and end the task."""
        self._is_stopping = True
        self._wake.set()
        await self._task
        await self._snapshots.wait()
        self._fail_all(StoreError("the store is closed: open it again"))

    def discard(self) -> None:
        """End the task of a bandit that has been deleted."""
        self._is_stopping = True
        self._fail_all(make_unknown_error(self.name))
        self._wake.set()

    def _fail_all(self, error: LatecomerError) -> None:
        for call in [*self._running, *self._queue, *(self._unlogged.calls if self._unlogged else ())]:
            call.fail(error)
        self._queue.clear()
        self._running = []
        for waiting in self._refreshes:
            if not waiting.done():
                waiting.set_exception(error)
        self._refreshes = []

    # ---- the task ----

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._work()
            except BanditDeletedError:
                self._fail_all(make_unknown_error(self.name))
                self._replica.on_deleted(self.number)
                return
            except DamagedFileError as error:
                self.damage, self.bandit = str(error), None
                self._replica.on_damage(self)
                self._fail_all(StoreError(str(error)))
                return
            except (*DATABASE_ERRORS, FileError) as error:
                self._failures += 1
                await self._replica.report_failure(error)
                if self._is_stopping:
                    return
                await asyncio.sleep(_PAUSES[min(self._failures, len(_PAUSES)) - 1])
                self._wake.set()
            else:
                self._failures = 0
                if self._is_stopping:
                    return

    async def _work(self) -> None:
        """Do everything that is to be done: load, follow, run calls."""
        while True:
            if self.bandit is None:
                await self._load()
            if (self._refreshes or self._is_behind) and self._unlogged is None:
                await self._follow()
            if not self._queue and self._unlogged is None:
                return
            async with self._replica.pool.take() as connection:
                await self._commit(connection)

    async def _load(self) -> None:
        """Read the state from the newest snapshot and the rows after it, in a thread."""
        self._unlogged = None
        loaded = await asyncio.to_thread(load_bandit, self._replica.address, self.descriptor)
        if loaded is None:
            raise BanditDeletedError
        self._chain, self._head = loaded.chain, loaded.head
        self.bandit = loaded.bandit

    async def _follow(self) -> None:
        """Apply the rows of other replicas, without a lock."""
        waiting, self._refreshes, self._is_behind = self._refreshes, [], False
        try:
            while True:
                async with self._replica.pool.take() as connection:
                    tail = await read_tail(connection, self.number, after=self._head[0])
                if not self._apply_tail(tail):
                    await self._load()
                elif len(tail) < TAIL:
                    break
        except BaseException:
            self._refreshes += waiting
            raise
        self._replica.report_success()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _apply_tail(self, tail: Sequence[Row]) -> bool:
        """Apply rows that follow the head; False where the state must be read anew.

        Rows that this replica has not seen may have been compacted with some that it has, or pruned.
        """
        if not tail:
            return True
        if tail[0].first != self._head[0] + 1 or self.bandit is None:
            return False
        rows = list(check_chain(tail, self.number, after=self._head[0], parent=self._head[1]))
        try:
            apply_rows(self.bandit, self._chain, rows)
        except BaseException:
            self.bandit = None  # half applied
            raise
        self._head = rows[-1].seq, rows[-1].link
        return True

    # ---- a commit ----

    async def _commit(self, connection: AsyncConnection[Any]) -> None:
        calls = self._running = self._take_calls()
        requests = [call.work.request for call in calls if call.work.request]
        try:
            locked = await lock_chain(connection, self.number, after=self._head[0], requests=requests)
            if locked.head is None:
                raise BanditDeletedError
            if await self._settle_unlogged(connection, locked, locked.head):
                return
            if not self._catch_up(locked, locked.head):
                await connection.execute("ROLLBACK")
                self._is_behind = True
                return
            known = await self._find_known(connection, locked)
            began = time.perf_counter()
            row = self._run_calls(calls, known, max(locked.now, locked.head.stamp))
            if row is None:
                await connection.execute("ROLLBACK")
            else:
                await self._append(connection, row, locked.head.unsaved, began)
            self._answer_running()
        finally:
            kept = set() if self._unlogged is None else set(map(id, self._unlogged.calls))
            self._put_back([call for call in self._running if id(call) not in kept])
            self._running = []

    def _put_back(self, calls: Sequence[PendingCall]) -> None:
        """Put calls that are not answered yet at the head of the queue, to be run again."""
        for call in reversed(calls):
            if not call.future.done():
                call.answer = None
                self._queue.appendleft(call)

    def _take_calls(self) -> list[PendingCall]:
        """Take the calls that somebody still waits for."""
        calls: list[PendingCall] = []
        if self._unlogged is None:
            while self._queue and len(calls) < _MAX_CALLS:
                call = self._queue.popleft()
                if not call.future.done():
                    calls.append(call)
        return calls

    def _answer_running(self) -> None:
        """Answer the calls that have been run; those that were put off stay."""
        for call in self._running:
            if call.answer is not None:
                call.resolve()
        self._replica.report_success()

    async def _settle_unlogged(self, connection: AsyncConnection[Any], locked: Locked, head: Head) -> bool:
        """Find out what has become of a row that may be in the log; True where this commit is done with that."""
        unlogged = self._unlogged
        if unlogged is None:
            return False
        row = unlogged.row
        if not locked.tail and head.seq == self._head[0]:  # nobody was faster: it still follows
            await commit_row(connection, row, unlogged.requests, unsaved=head.unsaved + row.count)
        elif locked.tail and locked.tail[0].checksum == row.checksum:  # it was committed
            await connection.execute("ROLLBACK")
        else:  # another replica's row is in its place
            await connection.execute("ROLLBACK")
            self._put_back(unlogged.calls)
            self._unlogged, self.bandit = None, None
            return True
        self._head, self._unlogged = (row.seq, row.link), None
        for call in unlogged.calls:
            call.resolve()
        self._replica.report_success()
        return True

    def _catch_up(self, locked: Locked, head: Head) -> bool:
        """Apply what other replicas have committed; False where that is too much to be done under the lock."""
        if len(locked.tail) == TAIL or not self._apply_tail(locked.tail):
            return False
        if self._head != (head.seq, head.checksum):
            raise make_row_error(self.number, head.seq, "the head of the chain is not its last row")
        return True

    async def _find_known(self, connection: AsyncConnection[Any], locked: Locked) -> dict[bytes, LoggedDecision]:
        """Return the decisions that answered requests before, by the requests' digests."""
        known: dict[bytes, LoggedDecision] = {}
        bandit = self.bandit
        assert bandit is not None  # noqa: S101
        for digest, (seq, round_) in locked.known.items():
            row = await read_row_of(connection, self.number, seq)
            if row is not None:
                found = find_logged_decision(row.payload, bandit.dim, round_)
                if found is None or found.request != digest:
                    raise make_row_error(self.number, row.seq, f"it lacks the request of round {round_}")
                known[digest] = found
        return known

    def _run_calls(self, calls: Sequence[PendingCall], known: dict[bytes, LoggedDecision], now: int) -> Row | None:
        """Run calls on the bandit; return the row of their events, None where there are none."""
        bandit = self.bandit
        assert bandit is not None  # noqa: S101
        parts: list[bytes] = []
        total, end = 0, time.perf_counter() + _RUN_SECONDS
        first: dict[bytes, PendingCall] = {}
        requests: list[tuple[bytes, int]] = []
        for call in calls:
            if time.perf_counter() > end:
                break  # the others are put off
            digest = call.work.request
            try:
                if digest and isinstance(call.work, Decide) and (digest in known or digest in first):
                    if digest in known:
                        call.answer = call.work.repeat(bandit, known[digest])
                    else:
                        call.work.call.check_same_body(_body_of(first[digest]))
                        call.answer = first[digest].answer
                    continue
                answer, data, count = call.work.run(bandit, now)
            except LatecomerError as error:
                bandit.has_unlogged_change = False  # it comes before any change
                call.fail(error)
                continue
            except BaseException as error:
                self.bandit = None  # it may be half changed: it is read anew
                call.fail(error)
                raise FileError(f"a call on bandit {self.name!r} failed: {error!r}") from error
            bandit.has_unlogged_change = False
            call.answer = answer
            parts.append(data)
            total += count
            if digest:
                first[digest] = call
                requests.append((digest, bandit.rounds))
        data = b"".join(parts)
        if not data:
            return None
        seq, parent = self._head
        row = make_row(self.number, seq + 1, count=total, rounds=bandit.rounds, stamp=now, parent=parent, payload=data)
        answered = [call for call in calls if call.answer is not None]
        self._unlogged = UnloggedRow(row, answered, requests)
        return row

    async def _append(self, connection: AsyncConnection[Any], row: Row, unsaved: int, began: float) -> None:
        """Append the row that was just made, and begin a snapshot where one is due."""
        unlogged, bandit = self._unlogged, self.bandit
        assert unlogged is not None and bandit is not None  # noqa: S101, PT018
        unsaved += row.count
        is_due = self._snapshots.is_due(unsaved, bandit, row.stamp)
        await commit_row(connection, row, unlogged.requests, unsaved=0 if is_due else unsaved)
        self._head, self._unlogged = (row.seq, row.link), None
        self._replica.report_commit(row.count, len(row.payload), time.perf_counter() - began)
        if is_due:
            self._snapshots.begin(bandit, self._chain, self._head, row.stamp)


def _body_of(call: PendingCall) -> bytes:
    work = call.work
    return work.call.body if isinstance(work, Decide) else b""
