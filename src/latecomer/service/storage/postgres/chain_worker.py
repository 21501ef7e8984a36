"""One bandit on one replica: its state as of some row, and the calls that wait to be run on the whole state.

A commit locks the chain's head, applies the rows of other replicas, runs the calls that have gathered, appends their
events as one row and commits; then the calls are answered. A row whose commit failed, or whose end was not seen, stays
`unlogged`: the next lock shows whether it is in the log, whether it can still be appended, or whether another replica
was faster; in that case the state is read anew, and the calls that still wait are run again.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from latecomer.errors import DamagedFileError, FileError, StoreError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.bandit.registry import make_unknown_error
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.postgres.batch import BanditDeletedError, BatchRow, run_calls
from latecomer.service.storage.postgres.call_queue import PATIENCE, CallQueue
from latecomer.service.storage.postgres.calls import PendingCall
from latecomer.service.storage.postgres.connection import DATABASE_ERRORS, RETRIED
from latecomer.service.storage.postgres.maintenance import SnapshotWriter, load_bandit
from latecomer.service.storage.postgres.messages import roll_back
from latecomer.service.storage.postgres.replica import Replica
from latecomer.service.storage.postgres.statements import (
    TAIL,
    Head,
    Locked,
    commit_row,
    lock_chain,
    read_known,
    read_tail,
)
from latecomer.service.storage.recovery import apply_rows
from latecomer.service.storage.rows import Row, check_chain, make_row_error

_PAUSES = (0.05, 0.1, 0.2, 0.5)  # seconds between attempts, after the first failures
_log = logging.getLogger(__name__)


class ChainWorker:
    """Runs the calls of one bandit, in a task of its own.

    Parameters
    ----------
    replica, descriptor
        What the bandits of a replica share, and the bandit.
    loaded
        Its state and the last row, where it has just been created; it is read from the database otherwise.
    """

    def __init__(
        self, replica: Replica, descriptor: BanditDescriptor, loaded: tuple[Bandit, Chain, Row] | None = None
    ) -> None:
        self._replica, self.descriptor = replica, descriptor
        self.number, self.name = descriptor.number, descriptor.name
        self.bandit: Bandit | None = None
        self._chain: Chain
        self._head: tuple[int, bytes]
        """The last row that is in the log for certain; `_unlogged` comes after it."""
        if loaded is not None:
            self.bandit, self._chain, row = loaded
            self._head = row.seq, row.link
        self.calls = CallQueue()
        self._unlogged: BatchRow | None = None
        self.damage = ""
        """The damage of its rows: it is quarantined."""
        self._is_behind = loaded is None
        self._snapshots = SnapshotWriter(replica, descriptor)
        self._failures, self._is_stopping, self._is_fresh = 0, False, False
        self._wake = asyncio.Event()
        self._wake.set()
        self._task = asyncio.create_task(self._run(), name=f"chain {self.number}")

    @property
    def seq(self) -> int:
        """The last commit that this replica has applied."""
        return self._head[0] if self.bandit is not None else 0

    def has_applied(self, seq: int) -> bool:
        """Tell whether this replica has a commit; a quarantined bandit will have no other."""
        return self.seq >= seq if self.bandit is not None else bool(self.damage)

    def submit(self, call: PendingCall) -> None:
        """Run a call with the next commit."""
        self.calls.add(call)
        self._wake.set()

    async def refresh(self) -> Bandit:
        """Apply everything that was committed before this call; return the bandit."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.calls.refreshes.append(waiting)
        self._wake.set()
        try:
            await asyncio.wait_for(waiting, PATIENCE)
        except TimeoutError:
            raise StoreError(self._replica.failure or f"the database did not answer within {PATIENCE} s") from None
        assert self.bandit is not None  # noqa: S101 - the refresh has loaded it
        return self.bandit

    def follow(self) -> None:
        """Apply the rows of other replicas soon."""
        self._is_behind = True
        self._wake.set()

    async def stop(self) -> None:
        """Run the calls that wait, if the database answers, and end the task."""
        self._is_stopping = True
        self._wake.set()
        await self._task
        await self._snapshots.stop()
        self.calls.fail_all(StoreError("the store is closed: open it again"))

    def discard(self) -> None:
        """End the task of a bandit that has been deleted."""
        self._is_stopping = True
        self.calls.fail_all(make_unknown_error(self.name))
        self._wake.set()

    # ---- the task ----

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._work()
                self._failures = 0
            except BanditDeletedError:
                self.calls.fail_all(make_unknown_error(self.name))
                self._replica.on_deleted(self.number)
                return
            except DamagedFileError as error:
                self.bandit = None
                if self._is_fresh:  # read anew, and damaged still
                    self.damage = str(error)
                    self.calls.fail_all(StoreError(str(error)))
                    return
                self._wake.set()
            except Exception as error:  # noqa: BLE001 - whatever it was, the task must go on
                await self._recover(error)
            if self._is_stopping:
                return

    async def _recover(self, error: Exception) -> None:
        """Go on after a failure: a database that does not answer, or a state that is lost."""
        self._failures += 1
        if isinstance(error, RETRIED):
            _log.info("the database has ended a transaction, which is tried again: %s", error)
        elif isinstance(error, (*DATABASE_ERRORS, FileError)):
            await self._replica.report_failure(error)
        else:
            _log.error("a batch of calls failed, and the state is read anew", exc_info=error)
            self.bandit = None
        if not self._is_stopping:
            await asyncio.sleep(_PAUSES[min(self._failures, len(_PAUSES)) - 1])
        self._wake.set()

    async def _work(self) -> None:
        """Load, follow and run calls, as long as there is anything to do."""
        while True:
            if self.bandit is None:
                await self._load()
            if (self.calls.refreshes or self._is_behind) and self._unlogged is None:
                await self._follow()
            if not self.calls and self._unlogged is None:
                return
            async with self._replica.pool.take() as connection:
                await self._commit(connection)

    async def _load(self) -> None:
        """Read the state from the newest snapshot and the rows after it, in a thread."""
        self._is_fresh, self._unlogged = True, None
        self.calls.fail_unlogged()
        loaded = await self._replica.run_in_thread(load_bandit, self._replica.address, self.descriptor)
        if loaded is None:
            raise BanditDeletedError
        self.bandit, self._chain, self._head = loaded
        self._snapshots.note_reading(loaded.chain)

    async def _follow(self) -> None:
        """Apply the rows of other replicas, without a lock."""
        waiting, self.calls.refreshes, self._is_behind = self.calls.refreshes, [], False
        try:
            while True:
                async with self._replica.pool.take() as connection:
                    tail = await read_tail(connection, self.number, after=self._head[0])
                if not self._apply_tail(tail):
                    await self._load()
                elif len(tail) < TAIL:
                    break
        except BaseException:
            self.calls.refreshes += waiting
            raise
        self._is_fresh = False
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
        requests = self.calls.list_requests()
        try:
            locked = await lock_chain(connection, self.number, after=self._head[0], requests=requests)
            if locked.head is None:
                raise BanditDeletedError
            if self._unlogged is not None:
                await self._settle(connection, self._unlogged, locked, locked.head)
            elif self._catch_up(locked, locked.head):
                calls = self.calls.take()  # those too that have come while this replica waited for the lock
                more = {call.work.lookup for call in calls} - requests - {b""}
                known = await read_known(connection, self.number, self.descriptor.spec.dim, locked.known, more=more)
                await self._run_and_append(connection, calls, known, locked, locked.head)
            else:
                await roll_back(connection)
                self._is_behind = True
        finally:
            self.calls.end_commit()

    async def _settle(self, connection: AsyncConnection[Any], unlogged: BatchRow, locked: Locked, head: Head) -> None:
        """Find out what has become of a row that may be in the log."""
        row = unlogged.row
        if not locked.tail and head.seq == self._head[0]:  # nobody was faster: it still follows
            await commit_row(connection, row, unlogged.requests, unsaved=head.unsaved + row.count)
        else:
            await roll_back(connection)
            found = locked.tail[0] if locked.tail else None
            if found is None or found.checksum != row.checksum:
                if found is not None and (found.seq, found.commits) == (row.seq, 1):  # another's row is in its place
                    self.calls.put_back_unlogged()
                self.bandit, self._unlogged = None, None  # where it was compacted meanwhile, nobody knows: see `_load`
                return
        self._finish(row)
        self.calls.answer_unlogged()

    def _finish(self, row: Row) -> None:
        self._head, self._unlogged, self._is_fresh = (row.seq, row.link), None, False
        self._replica.report_success()

    def _catch_up(self, locked: Locked, head: Head) -> bool:
        """Apply what other replicas have committed; False where that is too much to be done under the lock."""
        if len(locked.tail) == TAIL or not self._apply_tail(locked.tail):
            return False
        if self._head != (head.seq, head.checksum):
            raise make_row_error(self.number, head.seq, "the head of the chain is not its last row")
        return True

    async def _run_and_append(
        self,
        connection: AsyncConnection[Any],
        calls: Sequence[PendingCall],
        known: dict[bytes, LoggedDecision],
        locked: Locked,
        head: Head,
    ) -> None:
        """Run the calls, append the row of their events, and answer them; begin a snapshot where one is due."""
        began, bandit = time.perf_counter(), self.bandit
        assert bandit is not None  # noqa: S101 - it has caught up
        self.bandit = None  # until its calls have been run: where one fails half-way, the state is read anew
        made = run_calls(bandit, calls, known, head=self._head, now=max(locked.now, head.stamp), shift=locked.shift)
        self.bandit, bandit.has_unlogged_change = bandit, False
        if made is None:
            await roll_back(connection)
            self.calls.answer_running()
            return
        row, unsaved = made.row, head.unsaved + made.row.count
        self._unlogged, self.calls.unlogged = made, [call for call in calls if call.answer is not None]
        is_due = self._snapshots.claim(unsaved, bandit, self._chain, row.stamp)
        await commit_row(connection, row, made.requests, unsaved=0 if is_due else unsaved)
        self.calls.unlogged = []
        self._finish(row)
        self._replica.report_commit(row.count, len(row.payload), time.perf_counter() - began)
        self.calls.answer_running()
        if is_due:
            self._snapshots.begin(bandit, self._chain, self._head, row.stamp)
