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
from latecomer.policies.hollow import Hollow
from latecomer.service import events, folding
from latecomer.service.bandit import Bandit
from latecomer.service.births import Birth
from latecomer.service.events import Events
from latecomer.service.log import DESK, GENESIS, Row, damaged, first_row, row_at, row_of_round, rows, seq_of
from latecomer.service.request_index import RequestIndex
from latecomer.service.request_segments import load, remove_all
from latecomer.service.request_writer import flush
from latecomer.service.snapshots import keys, read
from latecomer.service.writer import Heads

_NO_ROOM = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError)
"""As on a full disk."""
_AT_ONCE = 1 << 20
"""Bytes of events that are read together."""


class Quarantined(NamedTuple):
    """A bandit whose log cannot be trusted, and what is wrong with it."""

    birth: Birth
    reason: str


def births(connection: apsw.Connection, heads: Heads) -> tuple[dict[int, Birth], int]:
    """The bandits that live, by number, and the next free number: a fold over the desk's own chain.

    What a replay that broke off has left is none of them.
    """
    alive: dict[int, Birth] = {}
    free = 1
    for row in rows(connection, DESK, after=0, before=GENESIS):
        try:
            free = max(free, _fold_births(alive, row) + 1)
        except (ValueError, KeyError, msgspec.MsgspecError) as error:
            raise damaged(DESK, row.seq, str(error)) from error
        heads[DESK] = (row.seq, row.link)
    return {number: birth for number, birth in alive.items() if not birth.is_unfinished}, free


def _fold_births(alive: dict[int, Birth], row: Row) -> int:
    """Move the list by one row; the largest number that it names."""
    told, largest = Events(row.payload, 0), 0
    for number, kind in enumerate(told.kinds.tolist()):
        if kind == events.CREATED:
            birth = msgspec.json.decode(told.text(number), type=Birth)
            alive[birth.number] = birth
            largest = max(largest, birth.number)
        elif kind == events.DELETED:
            del alive[int(told.records(kind, np.array([number]))["number"][0])]
    return largest


def recover(
    connection: apsw.Connection, found: Iterable[Birth], heads: Heads
) -> tuple[dict[str, Bandit], dict[str, Quarantined]]:
    """The bandits by name; and those of whom a row is damaged, set aside so that the others can be served.

    What SQLite itself finds wrong concerns the whole file, and is raised.
    """
    bandits, quarantined = {}, {}
    for birth in found:
        try:
            bandit = bandit_of(connection, birth, heads)
            index_requests(connection, bandit)
            bandits[birth.name] = bandit
        except (DamagedFileError, UnicodeDecodeError, TypeError) as error:  # the latter where a row has odd columns
            quarantined[birth.name] = Quarantined(birth, str(error))
    return bandits, quarantined


def bandit_of(connection: apsw.Connection, birth: Birth, heads: Heads, *, from_snapshot: bool = True) -> Bandit:
    """A bandit as the log leaves it; refuses, naming the row, what is missing or damaged."""
    try:
        return _folded(connection, birth, heads, from_snapshot, at_once=_AT_ONCE)
    except DamagedFileError:
        return _folded(connection, birth, heads, from_snapshot, at_once=1)  # to name the very row


def _folded(connection: apsw.Connection, birth: Birth, heads: Heads, from_snapshot: bool, *, at_once: int) -> Bandit:
    saved = _from_snapshot(connection, birth) if from_snapshot else None
    bandit, seq, before = saved or (_from_nothing(connection, birth), 0, GENESIS)
    bandit.loose = seq - bandit.bound
    for some in together(rows(connection, birth.number, after=seq, before=before), at_once):
        fold(bandit, some)
        bandit.loose += len(some)
        seq, before = some[-1].seq, some[-1].link
    if seq < max([1, *map(seq_of, keys(connection, birth.number))]):
        raise damaged(birth.number, seq + 1, "it is missing")
    heads[birth.number] = (seq, before)
    bandit.forgotten = _pruned_rounds(connection, birth)
    return bandit


def _from_nothing(connection: apsw.Connection, birth: Birth) -> Bandit:
    bandit = Bandit(birth, birth.learner())
    bandit.requests = load(connection, birth.number, at_least=0)
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
        asked = Events(b"".join(row.payload for row in some), bandit.dim).records(events.ASKED)
        index.update(asked["request"].tolist(), asked["round"].tolist())
        if index.is_full:
            taken, last_round = index.begin_flush(), some[-1].rounds
            with suppress(
                apsw.FullError, apsw.IOError, apsw.ReadOnlyError
            ):  # they stay in memory, as long as the disk is full
                deque(flush(connection, bandit.number, index, taken, last_round=last_round, lock=nullcontext()), 0)


def _pruned_rounds(connection: apsw.Connection, birth: Birth) -> int:
    """The last round that has been pruned; 0 where there is none, or where the oldest row does not tell."""
    try:
        first = first_row(connection, birth.number)
        if first is None or first.first == 1:
            return 0
        decided = Events(first.payload, birth.spec.dim).records(events.DECISION)["round"]
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
        folding.fold(bandit, b"".join(row.payload for row in some), last.stamp)
    except (ValueError, InputError) as error:
        raise damaged(last.bandit, last.seq, str(error)) from error
    if bandit.rounds != last.rounds:
        raise damaged(last.bandit, last.seq, f"it should end with round {last.rounds}, and ends with {bandit.rounds}")


def _from_snapshot(connection: apsw.Connection, birth: Birth) -> tuple[Bandit, int, bytes] | None:
    """The newest snapshot that is whole, with the log's open rounds: the bandit, its row, and that row's checksum."""
    for key in reversed(keys(connection, birth.number)):
        try:
            return _thawed(connection, birth, key)
        except (DamagedFileError, InputError, apsw.CorruptError, UnicodeDecodeError):
            continue  # an older one and more of the log tell the same; where the log is damaged, reading it says so
    return None


def _thawed(connection: apsw.Connection, birth: Birth, key: int) -> tuple[Bandit, int, bytes]:
    anchor, snapshot = read(connection, key)
    hollow = Hollow.from_bytes(snapshot.policy, name=f"the snapshot at row {seq_of(key)} of chain {birth.number}")
    actions, stamps = _open_rounds(connection, birth, hollow, seq=seq_of(key), anchor=anchor)
    bandit = Bandit(birth, hollow.filled(actions, stamps))
    bandit.requests = load(connection, birth.number, at_least=snapshot.indexed)
    bandit.stamp, bandit.bound = snapshot.stamp, snapshot.bound
    bandit.ids.add(snapshot.secrets)
    bandit.counters.restore(snapshot.counters)
    return bandit, seq_of(key), anchor


def _open_rounds(
    connection: apsw.Connection, birth: Birth, hollow: Hollow, *, seq: int, anchor: bytes
) -> tuple[Array, Integers]:
    """The actions and stamps of the open rounds, from the rows up to number `seq`."""
    oldest, dim = hollow.oldest, birth.spec.dim
    is_open = oldest <= hollow.rounds
    first = row_of_round(connection, birth.number, oldest) if is_open else row_at(connection, birth.number, seq)
    if first is None:
        raise damaged(birth.number, seq, "a snapshot stands on it, and it is missing")
    found = rows(connection, birth.number, after=first.first - 1, before=first.before, until=seq)
    held, done, last = hollow.rounds - oldest + 1, 0, b""
    actions, stamps = np.empty((held, dim)), np.empty(held, np.int64)
    for some in together(found, _AT_ONCE):
        last = some[-1].link
        try:
            told = Events(b"".join(row.payload for row in some), dim)
        except ValueError as error:
            raise damaged(birth.number, some[-1].seq, str(error)) from error
        decided = told.records(events.DECISION)
        decided = decided[np.searchsorted(decided["round"], oldest) :]
        part = slice(done, done := done + len(decided))
        if done > held:
            raise damaged(birth.number, some[-1].seq, "it has more decisions than a snapshot behind it knows of")
        actions[part], stamps[part] = decided["action"], decided["stamp"]
    if last != anchor or done < held:
        raise damaged(birth.number, seq, "a snapshot stands on it, and it is missing or another")
    return actions, np.arange(oldest, hollow.rounds + 1) if isinstance(birth.spec.window, int) else stamps
