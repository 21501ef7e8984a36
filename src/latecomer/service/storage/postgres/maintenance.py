"""Loading a bandit, and snapshots with what follows them: compaction, retention. Blocking work, in threads."""

import asyncio
import time
from collections import deque
from contextlib import closing
from functools import partial
from threading import Event

import psycopg

from latecomer.errors import FileError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.storage.background import Steps
from latecomer.service.storage.chain import Chain, EventCost
from latecomer.service.storage.compaction import compact
from latecomer.service.storage.maintenance import DAY
from latecomer.service.storage.postgres.call_queue import PATIENCE
from latecomer.service.storage.postgres.connection import MAINTENANCE_SECONDS, USE_SECONDS, PostgresConnection
from latecomer.service.storage.postgres.no_index import NoRequestIndex, open_no_index
from latecomer.service.storage.postgres.replica import Replica
from latecomer.service.storage.recovery import Recovered, apply_registry_row, recover_bandit
from latecomer.service.storage.retention import list_deleted_chains, prune_rows, remove_chain
from latecomer.service.storage.rows import GENESIS, MAX_SEQ, STORE_CHAIN, read_first_row, read_rows
from latecomer.service.storage.snapshots import SnapshotCopy, copy_for_snapshot, write_snapshot
from latecomer.tiers.tiered_kernel import TieredKernel


def load_bandit(address: str, descriptor: BanditDescriptor) -> Recovered | None:
    """Read a bandit's state; None where it has been deleted."""
    with closing(PostgresConnection(address, read_only=True, silence=USE_SECONDS)) as connection, connection:
        query = "SELECT seq FROM head WHERE bandit = ?"
        if not list(connection.execute(query, (descriptor.number,))):
            return None
        recovered = recover_bandit(connection, descriptor, open_index=open_no_index)
    for policy in recovered.bandit.policies:
        policy.state.code.warm_up()
    return recovered


_IDLE_FACTOR, _MAX_PAUSE = 9.0, 0.2
"""The pause after a step of a compaction, in the step's own duration, and in seconds at most."""
_REQUESTS_PER_STEP = 10_000


class SnapshotWriter:
    """Writes the snapshots of one bandit, one at a time.

    Parameters
    ----------
    replica
        The replica.
    descriptor
        The bandit.
    """

    def __init__(self, replica: Replica, descriptor: BanditDescriptor) -> None:
        self._replica, self._descriptor = replica, descriptor
        self._task: asyncio.Task[None] | None = None
        self._connection: PostgresConnection | None = None
        self._begun_at = 0
        """The store's time when the latest snapshot of this replica was begun, or its first commit."""
        self._event_cost = EventCost(0.0, 0)
        self._unsaved = 0
        """Events that no snapshot has, as far as this replica has read them or has claimed to write one."""
        self._begin_after = 0.0
        """The time, in seconds of `time.monotonic`, before which no snapshot is begun: the last has failed."""

    def note_reading(self, chain: Chain) -> None:
        """Note what has just been read anew: the events that it applied are in no snapshot."""
        self._unsaved = chain.unsaved_events

    def claim(self, unsaved: int, bandit: Bandit, chain: Chain, now: int) -> bool:
        """Tell whether a snapshot should be begun after so many events; if so, it stays due until one is written.

        It is due after `snapshot_every` events, after fewer where reading them anew would take long, and once a day;
        where very many rounds are open, not before a quarter as many events.
        """
        replica, events = self._replica, max(unsaved, self._unsaved)
        self._begun_at = self._begun_at or now
        if chain.event_cost.seconds:
            self._event_cost = chain.event_cost
        is_writing = self._task is not None and not self._task.done()
        if is_writing or events < bandit.policy.pending // 4 or time.monotonic() < self._begin_after:
            return False
        seconds, compiled = self._event_cost
        is_long = events * seconds >= replica.reading_seconds and compiled == TieredKernel.compiled_kernels
        if not is_long and events < replica.snapshot_every and now - self._begun_at <= DAY:
            return False
        self._unsaved = events
        return True

    def begin(self, bandit: Bandit, chain: Chain, head: tuple[int, bytes], now: int) -> None:
        """Copy the bandit as of its head, and write the copy in a thread; then compact and prune."""
        self._begun_at = now
        bandit.purchases.forget_ids(chain.pruned_rounds)
        chain.requests = NoRequestIndex(bandit.rounds)
        copy = copy_for_snapshot(bandit, chain)
        save = partial(self._save, copy, bandit, chain, head, now, self._replica.retention)
        self._task = asyncio.create_task(self._write(save))

    async def stop(self) -> None:
        """Wait for the snapshot that is being written, as long as a caller is patient; then give it up."""
        writing, patience = self._task, PATIENCE
        while writing is not None and not (await asyncio.wait([writing], timeout=patience))[0]:
            patience = 1.0
            if self._connection is not None:
                self._connection.cut()

    async def _write(self, save: "partial[None]") -> None:
        try:
            await asyncio.to_thread(save)
            self._replica.snapshot_failure = None
        except (psycopg.Error, OSError, FileError, ValueError, MemoryError) as error:
            self._replica.snapshot_failure = f"{type(error).__name__}: {error}"
            self._begin_after = time.monotonic() + MAINTENANCE_SECONDS

    def _save(
        self, copy: SnapshotCopy, bandit: Bandit, chain: Chain, head: tuple[int, bytes], now: int, retention: int | None
    ) -> None:
        stopping = self._replica.stopping
        with closing(_connect(self._replica.address)) as self._connection:
            connection = self._connection
            with connection:  # whole or not at all: another replica may remove parts that have no entry yet
                deque(write_snapshot(connection, copy, seq=head[0], row_checksum=head[1]), 0)
            self._unsaved = 0
            _take_steps(compact(connection, chain, until=head[0]), stopping, idle=_IDLE_FACTOR)
            if retention is not None:
                _take_steps(prune_rows(connection, bandit, chain, now=now, retention=retention), stopping)
                _take_steps(prune_requests(connection, bandit.number), stopping)


def _connect(address: str, *, read_only: bool = False) -> PostgresConnection:
    """Return a connection for work that may take long."""
    return PostgresConnection(address, read_only=read_only, silence=MAINTENANCE_SECONDS, hold=MAINTENANCE_SECONDS)


def _take_steps(steps: Steps, stopping: Event, *, idle: float = 0.0) -> None:
    """Take steps until the replica stops, with pauses of `idle` times a step's duration: the rest is for requests."""
    began = time.perf_counter()
    for _ in steps:
        if stopping.wait(min(idle * (time.perf_counter() - began), _MAX_PAUSE)):
            return
        began = time.perf_counter()


def prune_requests(connection: PostgresConnection, number: int) -> Steps:
    """Remove the requests whose rows are gone, some a step."""
    first = read_first_row(connection, number)
    if first is not None:
        yield from _remove_requests(connection, number, before=first.first)


def _remove_requests(connection: PostgresConnection, number: int, *, before: int) -> Steps:
    oldest = "SELECT seq FROM request WHERE bandit = ? AND seq < ? ORDER BY seq LIMIT ?"
    query = f"SELECT max(seq) FROM ({oldest}) AS oldest"  # noqa: S608 - our own text
    while (last := next(iter(connection.execute(query, (number, before, _REQUESTS_PER_STEP))))[0]) is not None:
        connection.execute("DELETE FROM request WHERE bandit = ? AND seq <= ?", (number, last))
        yield


def remove_deleted_chains(address: str, stopping: Event) -> None:
    """Remove the rows, snapshots and requests of bandits that have been deleted, or were never finished."""
    with closing(_connect(address, read_only=True)) as reader, reader:
        # One view: a bandit that is created meanwhile is in none of it.
        deleted = list_deleted_chains(reader, _list_alive(reader), ("log", "snapshot_part"))
    with closing(_connect(address)) as connection:
        for number in filter(partial(_end_chain, connection), deleted):
            _take_steps(_remove_requests(connection, number, before=MAX_SEQ), stopping)
            _take_steps(remove_chain(connection, number), stopping)  # last: what is left is found by the next start


def _end_chain(connection: PostgresConnection, number: int) -> bool:
    """Remove the head of a chain, unless its replay has gone on meanwhile: nothing can be appended to it any more."""
    with connection:
        list(connection.execute("SELECT seq FROM head WHERE bandit = ? FOR UPDATE", (STORE_CHAIN,)))
        is_over = number not in _list_alive(connection)
        if is_over:
            connection.execute("DELETE FROM head WHERE bandit = ?", (number,))
    return is_over


def _list_alive(connection: PostgresConnection) -> set[int]:
    """Return the numbers of the bandits that exist, with those that a replay has worked at since yesterday."""
    alive: dict[int, BanditDescriptor] = {}
    for row in read_rows(connection, STORE_CHAIN, after=0, parent=GENESIS):
        apply_registry_row(alive, row)
    yesterday = connection.read_time() - DAY
    return {number for number, found in alive.items() if not found.is_unfinished or found.stamp > yesterday}
