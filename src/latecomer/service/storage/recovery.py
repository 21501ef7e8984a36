"""From a file to bandits: which ones there are, and each one's newest snapshot moved on by the rows after it."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import NamedTuple

import apsw
import msgspec
import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.errors import DamagedFileError, InputError
from latecomer.policies.persistence.snapshot import PolicySnapshot
from latecomer.service.bandit import apply as folding
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.request_index import RequestIndex
from latecomer.service.storage.request_segments import load, remove_all
from latecomer.service.storage.request_writer import flush
from latecomer.service.storage.rows import GENESIS, STORE, Row, damaged, first_row, row_at, row_of_round, rows, seq_of
from latecomer.service.storage.snapshots import keys, read
from latecomer.service.storage.writer import Heads

_NO_ROOM = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError)
"""As on a full disk."""
_AT_ONCE = 1 << 20
"""Bytes of events that are read together."""


class Quarantined(NamedTuple):
    """A bandit whose log cannot be trusted, and what is wrong with it."""

    descriptor: BanditDescriptor
    reason: str


def read_descriptors(connection: apsw.Connection, heads: Heads) -> tuple[dict[int, BanditDescriptor], int]:
    """The bandits that live, by number, and the next free number: a fold over the store's own chain.

    What a replay that broke off has left is none of them.
    """
    alive: dict[int, BanditDescriptor] = {}
    free = 1
    for row in rows(connection, STORE, after=0, before=GENESIS):
        try:
            free = max(free, _fold_births(alive, row) + 1)
        except (ValueError, KeyError, msgspec.MsgspecError) as error:
            raise damaged(STORE, row.seq, str(error)) from error
        heads[STORE] = (row.seq, row.link)
    return {number: descriptor for number, descriptor in alive.items() if not descriptor.is_unfinished}, free


def _fold_births(alive: dict[int, BanditDescriptor], row: Row) -> int:
    """Move the list by one row; the largest number that it names."""
    told, largest = Payload(row.payload, 0), 0
    for number, kind in enumerate(told.kinds.tolist()):
        if kind == events.CREATED:
            descriptor = msgspec.json.decode(told.text(number), type=BanditDescriptor)
            alive[descriptor.number] = descriptor
            largest = max(largest, descriptor.number)
        elif kind == events.DELETED:
            del alive[int(told.records(kind, np.array([number]))["number"][0])]
    return largest


def recover(
    connection: apsw.Connection, found: Iterable[BanditDescriptor], heads: Heads
) -> tuple[dict[str, Bandit], dict[str, Quarantined]]:
    """The bandits by name; and those of whom a row is damaged, set aside so that the others can be served.

    What SQLite itself finds wrong concerns the whole file, and is raised.
    """
    bandits, quarantined = {}, {}
    for descriptor in found:
        try:
            bandit = bandit_of(connection, descriptor, heads)
            index_requests(connection, bandit)
            bandits[descriptor.name] = bandit
        except (DamagedFileError, UnicodeDecodeError, TypeError) as error:  # the latter where a row has odd columns
            quarantined[descriptor.name] = Quarantined(descriptor, str(error))
    return bandits, quarantined


def bandit_of(
    connection: apsw.Connection, descriptor: BanditDescriptor, heads: Heads, *, from_snapshot: bool = True
) -> Bandit:
    """A bandit as the log leaves it; refuses, naming the row, what is missing or damaged."""
    try:
        return _folded(connection, descriptor, heads, from_snapshot, at_once=_AT_ONCE)
    except DamagedFileError:
        return _folded(connection, descriptor, heads, from_snapshot, at_once=1)  # to name the very row


def _folded(
    connection: apsw.Connection, descriptor: BanditDescriptor, heads: Heads, from_snapshot: bool, *, at_once: int
) -> Bandit:
    saved = _from_snapshot(connection, descriptor) if from_snapshot else None
    bandit, seq, before = saved or (_from_nothing(connection, descriptor), 0, GENESIS)
    bandit.loose = seq - bandit.bound
    for some in together(rows(connection, descriptor.number, after=seq, before=before), at_once):
        fold(bandit, some)
        bandit.loose += len(some)
        seq, before = some[-1].seq, some[-1].link
    if seq < max([1, *map(seq_of, keys(connection, descriptor.number))]):
        raise damaged(descriptor.number, seq + 1, "it is missing")
    heads[descriptor.number] = (seq, before)
    bandit.forgotten = _pruned_rounds(connection, descriptor)
    return bandit


def _from_nothing(connection: apsw.Connection, descriptor: BanditDescriptor) -> Bandit:
    bandit = Bandit(descriptor, descriptor.new_policy())
    bandit.requests = load(connection, descriptor.number, at_least=0)
    return bandit


def index_requests(connection: apsw.Connection, bandit: Bandit) -> None:
    """Make the index of request ids anew from the log, where it lacks some or has some that the log has not."""
    if bandit.requests.is_whole and bandit.requests.indexed <= bandit.rounds:
        return
    with suppress(*_NO_ROOM):
        deque(remove_all(connection, bandit.number), 0)
    index = bandit.requests = RequestIndex()
    first = first_row(connection, bandit.number)
    after = first.first - 1 if first else 0
    for some in together(rows(connection, bandit.number, after=after, before=None), _AT_ONCE):
        asked = Payload(b"".join(row.payload for row in some), bandit.dim).records(events.DECISION_WITH_REQUEST)
        index.update(asked["request"].tolist(), asked["round"].tolist())
        if index.is_full:
            taken, last_round = index.begin_flush(), some[-1].rounds
            with suppress(
                apsw.FullError, apsw.IOError, apsw.ReadOnlyError
            ):  # they stay in memory, as long as the disk is full
                deque(flush(connection, bandit.number, index, taken, last_round=last_round, lock=nullcontext()), 0)


def _pruned_rounds(connection: apsw.Connection, descriptor: BanditDescriptor) -> int:
    """The last round that has been pruned; 0 where there is none, or where the oldest row does not tell."""
    try:
        first = first_row(connection, descriptor.number)
        if first is None or first.first == 1:
            return 0
        decided = Payload(first.payload, descriptor.spec.dim).records(events.DECISION)["round"]
    except (DamagedFileError, ValueError):
        return 0  # nothing stands on that row: whoever verifies the log is told of it
    return int(decided[0]) - 1 if len(decided) else first.rounds


def together(found: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Rows as they come, so many at a time as have `size` bytes of events: many small ones are read as fast as one."""
    some: list[Row] = []
    total = 0
    for row in found:
        some.append(row)
        total += len(row.payload)
        if total >= size:
            yield some
            some, total = [], 0
    if some:
        yield some


def fold(bandit: Bandit, some: Sequence[Row]) -> None:
    """Move a bandit by rows that follow each other, as fast as by one large row; an error names the last."""
    last = some[-1]
    try:
        folding.apply_payload(bandit, b"".join(row.payload for row in some), last.stamp)
    except (ValueError, InputError) as error:
        raise damaged(last.bandit, last.seq, str(error)) from error
    if bandit.rounds != last.rounds:
        raise damaged(last.bandit, last.seq, f"it should end with round {last.rounds}, and ends with {bandit.rounds}")


def _from_snapshot(connection: apsw.Connection, descriptor: BanditDescriptor) -> tuple[Bandit, int, bytes] | None:
    """The newest snapshot that is whole, with the log's open rounds: the bandit, its row, and that row's checksum."""
    for key in reversed(keys(connection, descriptor.number)):
        try:
            return _thawed(connection, descriptor, key)
        except (DamagedFileError, InputError, apsw.CorruptError, UnicodeDecodeError):
            continue  # an older one and more of the log tell the same; where the log is damaged, reading it says so
    return None


def _thawed(connection: apsw.Connection, descriptor: BanditDescriptor, key: int) -> tuple[Bandit, int, bytes]:
    anchor, snapshot = read(connection, key)
    policy = PolicySnapshot.from_bytes(
        snapshot.policy, name=f"the snapshot at row {seq_of(key)} of chain {descriptor.number}"
    )
    actions, stamps = _open_rounds(connection, descriptor, policy, seq=seq_of(key), anchor=anchor)
    bandit = Bandit(descriptor, policy.restore(actions, stamps))
    bandit.requests = load(connection, descriptor.number, at_least=snapshot.indexed)
    bandit.stamp, bandit.bound = snapshot.stamp, snapshot.bound
    bandit.ids.add(snapshot.secrets)
    bandit.counters.restore(snapshot.counters)
    return bandit, seq_of(key), anchor


def _open_rounds(
    connection: apsw.Connection, descriptor: BanditDescriptor, snapshot: PolicySnapshot, *, seq: int, anchor: bytes
) -> tuple[Array, Integers]:
    """The actions and stamps of the open rounds, from the rows up to number `seq`."""
    oldest, dim = snapshot.oldest, descriptor.spec.dim
    is_open = oldest <= snapshot.rounds
    first = (
        row_of_round(connection, descriptor.number, oldest) if is_open else row_at(connection, descriptor.number, seq)
    )
    if first is None:
        raise damaged(descriptor.number, seq, "a snapshot stands on it, and it is missing")
    found = rows(connection, descriptor.number, after=first.first - 1, before=first.before, until=seq)
    held, done, last = snapshot.rounds - oldest + 1, 0, b""
    actions, stamps = np.empty((held, dim)), np.empty(held, np.int64)
    for some in together(found, _AT_ONCE):
        last = some[-1].link
        try:
            told = Payload(b"".join(row.payload for row in some), dim)
        except ValueError as error:
            raise damaged(descriptor.number, some[-1].seq, str(error)) from error
        decided = told.records(events.DECISION)
        decided = decided[np.searchsorted(decided["round"], oldest) :]
        part = slice(done, done := done + len(decided))
        if done > held:
            raise damaged(descriptor.number, some[-1].seq, "it has more decisions than a snapshot behind it knows of")
        actions[part], stamps[part] = decided["action"], decided["stamp"]
    if last != anchor or done < held:
        raise damaged(descriptor.number, seq, "a snapshot stands on it, and it is missing or another")
    return actions, np.arange(oldest, snapshot.rounds + 1) if isinstance(descriptor.spec.window, int) else stamps
