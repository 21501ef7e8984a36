"""The log on one SQLite file: the implementation of `service.log_interface.Log`."""

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import apsw

from latecomer.errors import DamagedFileError, StoreError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.idempotency import LoggedDecision, find_logged_decision
from latecomer.service.bandit.registry import Registry
from latecomer.service.durations import parse_retention
from latecomer.service.log_interface import BatchedDecision, LogStatus
from latecomer.service.storage.background import Job
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.clock import Clocks, StoreClock
from latecomer.service.storage.connections import Connections
from latecomer.service.storage.creation import create_if_missing, lock_path
from latecomer.service.storage.limits import Limits
from latecomer.service.storage.listeners import OnCommit, OnDeath, OnTrouble
from latecomer.service.storage.lock import StoreLock
from latecomer.service.storage.maintenance import Maintenance
from latecomer.service.storage.pending_commit import Commit, Heads
from latecomer.service.storage.recovery import recover_registry
from latecomer.service.storage.request_id_segments import make_bucket_reader, make_index, make_index_error
from latecomer.service.storage.retention import list_deleted_chains
from latecomer.service.storage.rows import (
    STORE_CHAIN,
    Row,
    find_row_of_round,
    make_row_error,
    read_remaining_rows,
    read_rows_from,
)
from latecomer.service.storage.schema import make_read_error
from latecomer.service.storage.settings_table import load_clock, read_setting, write_settings
from latecomer.service.storage.snapshots import read_newest_secrets
from latecomer.service.storage.writer import Writer

DEFAULT_RETENTION = "7d"


class SQLiteLog:
    """The rows, snapshots, request ids and settings of one SQLite file; opened by `open_log`.

    Parameters
    ----------
    connections
        The connections to the file; `close` closes them.
    writer
        The thread that commits.
    maintenance
        The scheduler of background jobs.
    chains
        The chains of the bandits that are served, by number.
    limits
        Sizes of a new chain's index of request ids.
    """

    def __init__(
        self,
        connections: Connections,
        writer: Writer,
        maintenance: Maintenance,
        chains: dict[int, Chain],
        limits: Limits,
    ) -> None:
        self.writer, self.maintenance, self.chains = writer, maintenance, chains
        self._connections, self._limits = connections, limits
        self.lock: RLock = writer.lock
        self.wait: Callable[..., None] = writer.wait
        self.wait_async: Callable[..., Coroutine[Any, Any, None]] = writer.wait_async
        self.resolve_when_done: Callable[..., None] = writer.resolve_when_done
        self.flush_now: Callable[[], None] = writer.flush_now
        self.group: Callable[[], AbstractContextManager[None]] = writer.group

    @property
    def reader(self) -> apsw.Connection:
        """The connection that reads; used with the lock held."""
        return self._connections.reading

    # ---- events ----

    def begin_chain(self, bandit: Bandit, created: bytes, begun: bytes) -> Commit:
        """Record a bandit's creation in the store's chain, and the first event of its own chain, in one commit."""
        stamp = bandit.descriptor.stamp
        self.chains[bandit.number] = Chain(bandit.number, make_index(self._limits), saved_at=stamp)
        self.chains[bandit.number].small_rows += 1
        with self.writer.group():
            self.append_registry_event(created, stamp=stamp)
            # A replayed bandit's first events are older than the bandit: its chain begins with stamp 0.
            return self.writer.append(bandit.number, begun, count=1, rounds=0, stamp=0)

    def append(self, bandit: Bandit, payload: bytes, *, count: int, stamp: int, request: bytes = b"") -> Commit:
        """Append a bandit's events, and schedule the maintenance that is due."""
        requests = [(request, bandit.rounds, payload)] if request else []
        return self._append(bandit, payload, requests, count=count, stamp=stamp)

    def append_batch(self, bandit: Bandit, made: Sequence[BatchedDecision], *, stamp: int) -> Commit:
        """Append the decisions of a batch, with the requests that they answer."""
        requests = [one for one in made if one[0]]
        return self._append(bandit, b"".join([data for _, _, data in made]), requests, count=len(made), stamp=stamp)

    def _append(
        self, bandit: Bandit, payload: bytes, requests: Sequence[BatchedDecision], *, count: int, stamp: int
    ) -> Commit:
        """Append events; their requests are known before they are on disk, and before a snapshot has the decisions."""
        chain, commit = self.chains[bandit.number], Commit(done=True)
        with self.writer.group():
            if payload:
                commit = self.writer.append(bandit.number, payload, count=count, rounds=bandit.rounds, stamp=stamp)
            bandit.has_unlogged_change = False
            for request, round_, data in requests:
                chain.add_request(request, round_, data, commit)
        chain.small_rows += 1
        chain.unsaved_events += count
        self.maintenance.run_due(bandit, chain, stamp, len(self.chains))
        return commit

    def append_replayed(self, bandit: Bandit, payload: Payload, *, count: int, stamp: int) -> Commit:
        """Append events of another log that a bandit has applied, with the requests that they answer."""
        self.chains[bandit.number].add_requests(payload)
        return self.append(bandit, payload.to_bytes(), count=count, stamp=stamp)

    def append_registry_event(self, payload: bytes, *, stamp: int) -> Commit:
        """Append an event to the store's own chain."""
        return self.writer.append(STORE_CHAIN, payload, count=1, rounds=0, stamp=stamp)

    def delete_chain(self, number: int, deleted: bytes, *, stamp: int) -> Commit:
        """Record a bandit's deletion in the store's chain, and have its rows removed."""
        commit = self.append_registry_event(deleted, stamp=stamp)
        self.chains.pop(number, None)
        self.maintenance.remove_chain(number)
        return commit

    # ---- reading ----

    def read_rows(self, number: int) -> Iterator[Row]:
        """Yield a bandit's rows, from the first that has not been pruned."""
        return read_remaining_rows(self.reader, number)

    def read_rows_from(self, number: int, round: int) -> Iterator[Row]:
        """Yield a bandit's durable rows from the one that has a round on, as of one moment; without the lock."""
        with self._connections.open_view() as connection:
            yield from read_rows_from(connection, number, round)

    def read_secrets(self, number: int) -> list[tuple[int, bytes]]:
        """Return the secrets of decision ids as of the newest snapshot."""
        return read_newest_secrets(self.reader, number)

    def find_decision(self, bandit: Bandit, request: bytes) -> tuple[LoggedDecision, Commit] | None:
        """Return the decision that answered a request; None where there is none, or where it has been pruned.

        `StoreError` where the index or the row is damaged; the next opening rebuilds the index.
        """
        try:
            return self._find_decision(bandit, self.chains[bandit.number], request)
        except DamagedFileError as error:
            self.maintenance.drop_index(bandit.number)
            raise StoreError(str(error)) from error
        except apsw.Error as error:  # a page that SQLite cannot read
            raise StoreError(str(make_read_error("the log", error))) from error

    def _find_decision(self, bandit: Bandit, chain: Chain, request: bytes) -> tuple[LoggedDecision, Commit] | None:
        number = bandit.number
        round_ = chain.requests.find(request, make_bucket_reader(self.reader, number))
        if round_ is None:
            return None
        pending = chain.pending_requests.get(request)  # the writer's thread removes what is on disk
        if pending is not None:
            payload, commit = pending
            found = find_logged_decision(payload, bandit.dim, round_)
        else:
            row = find_row_of_round(self.reader, number, round_)
            if row is None:
                return None
            commit = Commit(done=True)
            try:
                found = find_logged_decision(row.payload, bandit.dim, round_)
            except ValueError as error:
                raise make_row_error(row.bandit, row.seq, str(error)) from error
        if found is None:
            return None
        if found.request != request:
            raise make_index_error(number)
        return found, commit

    # ---- snapshots and settings ----

    def save_all(self, bandits: Iterable[Bandit], *, now: int) -> None:
        """Order a snapshot of every bandit that has events since its last one."""
        for bandit in bandits:
            chain = self.chains[bandit.number]
            if chain.unsaved_events and not self.writer.failure:
                self.maintenance.save(bandit, chain, now, last=True)

    def read_setting(self, name: str, default: str) -> str:
        """Return a setting of the store."""
        return read_setting(self.reader, name, default)

    def write_setting(self, name: str, value: str) -> None:
        """Write a setting, after everything appended so far."""
        job = Job(lambda connection: write_settings(connection, **{name: value}), (name, STORE_CHAIN))
        self.writer.run_after_pending(job)

    @property
    def retention(self) -> int | None:
        """Microseconds that rows stay after their window; None for ever."""
        return self.maintenance.retention

    def set_retention(self, text: str) -> None:
        """Change the retention from now on, and for later openings."""
        self.maintenance.retention = parse_retention(text)
        self.write_setting("retention", text)

    # ---- the whole ----

    @property
    def failure(self) -> str | None:
        """The reason why nothing can be written now; None where something can."""
        return self.writer.failure

    def find_fault(self) -> str | None:
        """Return why nothing can be written until the store is opened again; None where that is not so."""
        return self.writer.find_fault()

    def get_status(self) -> LogStatus:
        """Return the state and the totals since the log was opened."""
        writer = self.writer
        failure, background = writer.failure or writer.find_fault(), writer.jobs.failure
        free = self._connections.measure_free()
        return LogStatus(failure, background, writer.commits, writer.events, writer.bytes, writer.seconds, free)

    def listen(self, *, on_commit: OnCommit, on_trouble: OnTrouble, on_death: OnDeath) -> None:
        """Set the callbacks of the writer's thread."""
        listeners = self.writer.listeners
        listeners.on_commit, listeners.on_trouble, listeners.on_death = on_commit, on_trouble, on_death

    def close(self) -> None:
        """Commit what is left, finish snapshots, and release the files."""
        self.writer.stop()
        self._connections.close()


def open_log(
    path: str | os.PathLike[str],
    clocks: Clocks,
    *,
    snapshot_every: int,
    prune: bool,
    create: bool,
    limits: Limits,
) -> tuple[SQLiteLog, Registry, StoreClock]:
    """Open a store's file, created if need be; recover its bandits and its clock, and start its writer."""
    store_lock = lock_path(real := Path(os.path.realpath(path)))
    try:
        create_if_missing(real, create=create)
        opened = _open_locked(real, store_lock, clocks, snapshot_every, prune, limits)
        store_lock.mark_created()
    except (apsw.Error, UnicodeDecodeError, TypeError) as error:  # the latter where a damaged row has odd columns
        store_lock.release()
        raise make_read_error(real, error) from error
    except BaseException:
        store_lock.release()
        raise
    return opened


def _open_locked(
    path: Path, store_lock: StoreLock, clocks: Clocks, snapshot_every: int, prune: bool, limits: Limits
) -> tuple[SQLiteLog, Registry, StoreClock]:
    connections, lock = Connections(path, store_lock), RLock()
    heads: Heads = {}
    registry, chains, alive = recover_registry(connections.writing, heads, limits=limits)
    bandits = registry.bandits.values()
    clock = load_clock(connections.writing, clocks, latest=max((bandit.stamp for bandit in bandits), default=0))
    for bandit in bandits:
        chains[bandit.number].saved_at = clock.now()
        for policy in bandit.policies:
            policy.state.code.warm_up()
    retention = parse_retention(read_setting(connections.writing, "retention", DEFAULT_RETENTION))
    deleted = list_deleted_chains(connections.reading, alive, ("log", "snapshot_part", "request_bucket"))
    connections.save_clock_or_fail(clock)
    reconnect: Callable[[], apsw.Connection] | None = None
    if connections.failure:
        reconnect = partial(connections.reconnect, clock, lock)
    writer = Writer(
        connections.writing, lock, heads, reconnect=reconnect, failure=connections.failure, check=connections.check
    )
    kept = retention if prune else None
    maintenance = Maintenance(writer, snapshot_every=snapshot_every, retention=kept, limits=limits)
    for number in deleted:
        maintenance.remove_chain(number)
    return SQLiteLog(connections, writer, maintenance, chains, limits), registry, clock
