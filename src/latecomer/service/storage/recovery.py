"""Recovery: read the bandits of a file, each from its newest whole snapshot and the rows after it."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import NamedTuple, Protocol

import apsw
import msgspec
import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.errors import DamagedFileError, InputError
from latecomer.policies.persistence.snapshot import PolicySnapshot
from latecomer.service.bandit import events
from latecomer.service.bandit.apply import apply_payload
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.registry import Quarantined, Registry
from latecomer.service.bandit.request_id_index import RequestIndex
from latecomer.service.storage.chain import Chain, EventCost
from latecomer.service.storage.limits import Limits
from latecomer.service.storage.pending_commit import Heads
from latecomer.service.storage.request_id_segments import load_index, make_index, remove_index
from latecomer.service.storage.request_id_writer import flush_requests
from latecomer.service.storage.rows import (
    GENESIS,
    STORE_CHAIN,
    Row,
    find_row_of_round,
    make_row_error,
    read_first_row,
    read_remaining_rows,
    read_row,
    read_rows,
    seq_of,
)
from latecomer.service.storage.snapshots import list_snapshots, read_snapshot
from latecomer.service.storage.sql import SQLConnection
from latecomer.tiers.tiered_kernel import TieredKernel

_DISK_FULL = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError)
"""Errors of SQLite on a full disk."""
_BATCH_BYTES = 1 << 20
"""Bytes of events that are applied together."""
_MEASURED_EVENTS = 256
"""Events that are applied together, at least, to measure what one takes: each time has a cost of its own."""


class OpenIndex(Protocol):
    """Opens the index of a chain's request ids; it is not whole where it lacks rounds up to `at_least`."""

    def __call__(self, bandit: int, *, at_least: int) -> RequestIndex:
        """Open the index of a chain."""


class Recovered(NamedTuple):
    """A bandit as its log leaves it, its chain, and the last row's number and checksum."""

    bandit: Bandit
    chain: Chain
    head: tuple[int, bytes]


def read_descriptors(connection: SQLConnection, heads: Heads) -> tuple[dict[int, BanditDescriptor], int]:
    """Return the bandits that exist, by number, and the next free number, from the store's own chain.

    A bandit whose replay was broken off is left out.
    """
    alive: dict[int, BanditDescriptor] = {}
    free = 1
    for row in read_rows(connection, STORE_CHAIN, after=0, parent=GENESIS):
        try:
            free = max(free, apply_registry_row(alive, row) + 1)
        except (ValueError, KeyError, msgspec.MsgspecError) as error:
            raise make_row_error(STORE_CHAIN, row.seq, str(error)) from error
        heads[STORE_CHAIN] = (row.seq, row.link)
    return {number: descriptor for number, descriptor in alive.items() if not descriptor.is_unfinished}, free


def apply_registry_row(alive: dict[int, BanditDescriptor], row: Row) -> int:
    """Apply creations and deletions to the bandits that exist; return the largest number that is created."""
    payload, largest = Payload(row.payload, 0), 0
    for number, kind in enumerate(payload.kinds.tolist()):
        if kind == events.CREATED:
            descriptor = msgspec.json.decode(payload.text(number), type=BanditDescriptor)
            alive[descriptor.number] = descriptor
            largest = max(largest, descriptor.number)
        elif kind == events.DELETED:
            del alive[int(payload.records(kind, np.array([number]))["number"][0])]
    return largest


def recover_registry(
    connection: apsw.Connection, heads: Heads, *, limits: Limits
) -> tuple[Registry, dict[int, Chain], set[int]]:
    """Recover every bandit; return them with their chains, and the numbers of all that exist.

    Those with a damaged row are quarantined, so that the others can be served. Damage that SQLite itself finds concerns
    the whole file, and is raised. The heads of all chains are added to `heads`.
    """
    descriptors, next_number = read_descriptors(connection, heads)
    bandits: dict[str, Bandit] = {}
    quarantined: dict[str, Quarantined] = {}
    chains: dict[int, Chain] = {}
    open_index = make_index_opener(connection, limits)
    for number, descriptor in descriptors.items():
        try:
            bandit, chain, heads[number] = recover_bandit(connection, descriptor, open_index=open_index)
            rebuild_index(connection, bandit, chain, limits=limits)
        except (DamagedFileError, UnicodeDecodeError, TypeError) as error:  # the latter where a row has odd columns
            quarantined[descriptor.name] = Quarantined(descriptor, str(error))
            continue
        bandits[descriptor.name], chains[number] = bandit, chain
    return Registry(bandits, quarantined, next_number=next_number), chains, set(descriptors)


def recover_bandit(
    connection: SQLConnection,
    descriptor: BanditDescriptor,
    *,
    open_index: OpenIndex,
    from_snapshot: bool = True,
) -> Recovered:
    """Recover one bandit; `DamagedFileError` names a row that is missing or damaged.

    `open_index` opens the index of its request ids.
    """
    try:
        return _recover(connection, descriptor, open_index, from_snapshot, batch_bytes=_BATCH_BYTES)
    except DamagedFileError:
        return _recover(connection, descriptor, open_index, from_snapshot, batch_bytes=1)  # to name the very row


def make_index_opener(connection: apsw.Connection, limits: Limits | None = None) -> OpenIndex:
    """Return the function that opens the indices of a SQLite file."""
    return partial(load_index, connection, limits=limits or Limits())


def _recover(
    connection: SQLConnection,
    descriptor: BanditDescriptor,
    open_index: OpenIndex,
    from_snapshot: bool,
    *,
    batch_bytes: int,
) -> Recovered:
    start = load_newest_snapshot(connection, descriptor, open_index) if from_snapshot else None
    bandit, chain, (seq, parent) = start or _start_empty(descriptor, open_index)
    chain.small_rows = seq - chain.compacted_up_to
    for rows in batch_rows(read_rows(connection, descriptor.number, after=seq, parent=parent), batch_bytes):
        apply_rows(bandit, chain, rows)
        seq, parent = rows[-1].seq, rows[-1].link
    if seq < max([1, *map(seq_of, list_snapshots(connection, descriptor.number))]):
        raise make_row_error(descriptor.number, seq + 1, "it is missing")
    chain.pruned_rounds = _find_pruned_rounds(connection, descriptor)
    return Recovered(bandit, chain, (seq, parent))


def _start_empty(descriptor: BanditDescriptor, open_index: OpenIndex) -> Recovered:
    bandit = Bandit(descriptor, descriptor.make_policy())
    chain = Chain(descriptor.number, open_index(descriptor.number, at_least=0))
    return Recovered(bandit, chain, (0, GENESIS))


def apply_rows(bandit: Bandit, chain: Chain, rows: Sequence[Row]) -> None:
    """Apply consecutive rows at once, which is as fast as one large row; an error names the last."""
    last, began, compiled = rows[-1], time.thread_time(), TieredKernel.compiled_kernels
    try:
        payload = apply_payload(bandit, b"".join(row.payload for row in rows), last.stamp)
    except (ValueError, InputError) as error:
        raise make_row_error(last.bandit, last.seq, str(error)) from error
    if bandit.rounds != last.rounds:
        raise make_row_error(
            last.bandit, last.seq, f"it should end with round {last.rounds}, and ends with {bandit.rounds}"
        )
    chain.add_requests(payload)
    count = sum(row.count for row in rows)
    chain.unsaved_events += count
    if count >= _MEASURED_EVENTS and compiled == TieredKernel.compiled_kernels:  # nothing was compiled meanwhile
        chain.event_cost = EventCost((time.thread_time() - began) / count, compiled)
    chain.small_rows += len(rows)


def batch_rows(found: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Split rows into batches of about `size` bytes of events: many small rows are then applied as fast as one."""
    batch: list[Row] = []
    total = 0
    for row in found:
        batch.append(row)
        total += len(row.payload)
        if total >= size:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def rebuild_index(connection: apsw.Connection, bandit: Bandit, chain: Chain, *, limits: Limits) -> None:
    """Rebuild the index of request ids from the log, where it lacks requests or has some that the log lacks."""
    if chain.requests.is_whole and chain.requests.indexed <= bandit.rounds:
        return
    with suppress(*_DISK_FULL):
        deque(remove_index(connection, bandit.number), 0)
    index = chain.requests = make_index(limits)
    for rows in batch_rows(read_remaining_rows(connection, bandit.number), _BATCH_BYTES):
        chain.add_requests(Payload(b"".join(row.payload for row in rows), bandit.dim))
        if index.is_full:
            taken, last_round = index.begin_flush(), rows[-1].rounds
            steps = flush_requests(connection, bandit.number, index, taken, last_round=last_round, lock=nullcontext())
            with suppress(*_DISK_FULL):  # they stay in memory as long as the disk is full
                deque(steps, 0)


def _find_pruned_rounds(connection: SQLConnection, descriptor: BanditDescriptor) -> int:
    """Return the last round that has been pruned; 0 where there is none, or where the first row is damaged."""
    try:
        first = read_first_row(connection, descriptor.number)
        if first is None or first.first == 1:
            return 0
        decided = Payload(first.payload, descriptor.spec.dim).records(events.DECISION)["round"]
    except (DamagedFileError, ValueError):
        return 0  # no state depends on that row; `verify` reports it
    return int(decided[0]) - 1 if len(decided) else first.rounds


def load_newest_snapshot(
    connection: SQLConnection, descriptor: BanditDescriptor, open_index: OpenIndex
) -> Recovered | None:
    """Return the bandit as of its newest whole snapshot, with the open rounds of the log; None where there is none."""
    for key in reversed(list_snapshots(connection, descriptor.number)):
        try:
            return _load_snapshot(connection, descriptor, key, open_index)
        except (DamagedFileError, InputError, apsw.CorruptError, UnicodeDecodeError):
            continue  # an older snapshot with more rows gives the same; damaged rows are found when they are read
    return None


def _load_snapshot(
    connection: SQLConnection, descriptor: BanditDescriptor, key: int, open_index: OpenIndex
) -> Recovered:
    row_checksum, snapshot = read_snapshot(connection, key)
    name = f"the snapshot at row {seq_of(key)} of chain {descriptor.number}"
    policy = PolicySnapshot.from_bytes(snapshot.policy, name=name)
    actions, stamps = _read_open_rounds(connection, descriptor, policy, seq=seq_of(key), row_checksum=row_checksum)
    challenger = None
    if snapshot.challenger:
        challenger = PolicySnapshot.from_bytes(snapshot.challenger, name=name).restore(actions, stamps)
    bandit = Bandit(descriptor, policy.restore(actions, stamps), challenger)
    bandit.stamp = snapshot.stamp
    bandit.ids.add(snapshot.secrets)
    bandit.counters.restore(snapshot.counters)
    if snapshot.tally is not None:
        bandit.tally.restore(snapshot.tally)
    if snapshot.monitor is not None:
        bandit.monitor.restore(snapshot.monitor)
    if snapshot.catalogue:
        bandit.catalogue.restore(snapshot.catalogue)
    bandit.stages.restore(snapshot.stages)
    index = open_index(descriptor.number, at_least=snapshot.indexed_rounds)
    chain = Chain(descriptor.number, index)
    chain.compacted_up_to = snapshot.compacted_up_to
    return Recovered(bandit, chain, (seq_of(key), row_checksum))


def _read_open_rounds(
    connection: SQLConnection,
    descriptor: BanditDescriptor,
    snapshot: PolicySnapshot,
    *,
    seq: int,
    row_checksum: bytes,
) -> tuple[Array, Integers]:
    """Return the actions and stamps of the rounds that the policy holds, from the rows up to number `seq`."""
    number, oldest, dim = descriptor.number, snapshot.kept, descriptor.spec.dim
    is_open = oldest <= snapshot.rounds
    first = find_row_of_round(connection, number, oldest) if is_open else read_row(connection, number, seq)
    if first is None:
        raise make_row_error(number, seq, "a snapshot was taken at it, and it is missing")
    found = read_rows(connection, number, after=first.first - 1, parent=first.parent, until=seq)
    open_count, done, last = snapshot.rounds - oldest + 1, 0, b""
    actions, stamps = np.empty((open_count, dim)), np.empty(open_count, np.int64)
    for rows in batch_rows(found, _BATCH_BYTES):
        last = rows[-1].link
        try:
            payload = Payload(b"".join(row.payload for row in rows), dim)
        except ValueError as error:
            raise make_row_error(number, rows[-1].seq, str(error)) from error
        decided = payload.records(events.DECISION)
        decided = decided[np.searchsorted(decided["round"], oldest) :]
        part = slice(done, done := done + len(decided))
        if done > open_count:
            raise make_row_error(number, rows[-1].seq, "it has more decisions than the snapshot after it")
        actions[part], stamps[part] = decided["action"], decided["stamp"]
    if last != row_checksum or done < open_count:
        raise make_row_error(number, seq, "a snapshot was taken at it, and it is missing or another")
    return actions, np.arange(oldest, snapshot.rounds + 1) if isinstance(descriptor.spec.window, int) else stamps
