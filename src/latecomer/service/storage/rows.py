"""Rows of the log: each has the events of one bandit in one commit, chained to the row before by checksums.

A row's key is bandit · 2⁴⁰ + sequence number, so a bandit's rows are neighbours, numbered 1, 2, … without gaps. Its
checksum covers its number, its contents and its parent's checksum: a row that is missing, swapped or changed is found,
and refused by its number. Consecutive small rows may be compacted into one (`storage.compaction`): it has the number of
the last, the count of commits that it stands for, and the checksum that the next row has as its parent. Chain 0 is the
store's own: it records which bandits were created and deleted.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw
from msgspec import Struct

from latecomer.errors import DamagedFileError
from latecomer.service.storage.sql import SQLConnection

_SHIFT = 40
MAX_SEQ = (1 << _SHIFT) - 1
"""The largest number that a row can have."""
STORE_CHAIN = 0
"""The chain of the store itself."""
GENESIS = bytes(16)
"""The parent of the first row of a chain."""

_HEADER = struct.Struct("<qqqqq")
_NEXT_ROW = "SELECT key, commits, rounds FROM log WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1"
_INSERT = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Row(Struct, frozen=True):
    """A row: its place in the chain, the bandit's rounds and latest stamp after it, and its events.

    A compacted row stands for `commits` commits: `seq` is the number of the last, and `last_checksum` its checksum.
    The row of a single commit has an empty `last_checksum`.
    """

    bandit: int
    seq: int
    commits: int
    count: int
    rounds: int
    stamp: int
    parent: bytes
    last_checksum: bytes
    checksum: bytes
    payload: bytes

    @property
    def first(self) -> int:
        """The number of the first commit that it stands for."""
        return self.seq - self.commits + 1

    @property
    def link(self) -> bytes:
        """The checksum that the next row has as its parent."""
        return self.last_checksum or self.checksum


def key_of(bandit: int, seq: int) -> int:
    """Return the key of a row."""
    return (bandit << _SHIFT) + seq


def seq_of(key: int) -> int:
    """Return the number of a row within its chain."""
    return key & MAX_SEQ


def chain_of(key: int) -> int:
    """Return the chain of a row."""
    return key >> _SHIFT


def make_row(
    bandit: int,
    seq: int,
    *,
    commits: int = 1,
    count: int,
    rounds: int,
    stamp: int,
    parent: bytes,
    last_checksum: bytes = b"",
    payload: bytes,
) -> Row:
    """Make a row and its checksum: BLAKE2b, 16 bytes, over parent, key and numbers, `last_checksum`, and payload."""
    check_numbers(commits, count, rounds, stamp)
    digest = hashlib.blake2b(parent, digest_size=16)
    digest.update(_HEADER.pack(key_of(bandit, seq), commits, count, rounds, stamp) + last_checksum)
    digest.update(payload)
    return Row(bandit, seq, commits, count, rounds, stamp, parent, last_checksum, digest.digest(), payload)


def check_numbers(*numbers: object) -> None:
    """Raise `TypeError` unless all are of type int: a column of NumPy's integers is stored as bytes, and unreadable."""
    if set(map(type, numbers)) != {int}:
        raise TypeError(f"the numbers of a row must be of type int; got {numbers!r}")


def insert_row(connection: SQLConnection, row: Row) -> None:
    """Write a row; where an earlier attempt, whose end was not seen, has written it already, leave it."""
    key = key_of(row.bandit, row.seq)
    numbers = (key, row.commits, row.count, row.rounds, row.stamp)
    try:
        connection.execute(_INSERT, (*numbers, row.parent, row.last_checksum, row.checksum, row.payload))
    except apsw.ConstraintError:
        present = list(connection.execute("SELECT checksum FROM log WHERE key = ?", (key,)))
        if present != [(row.checksum,)]:
            raise


def read_rows(
    connection: SQLConnection, bandit: int, *, after: int, parent: bytes | None, until: int = MAX_SEQ
) -> Iterator[Row]:
    """Yield the rows after number `after`, each checked and none missing.

    `parent` is the checksum of row `after`; None where it is not known.
    """
    return check_chain(_select(connection, bandit, after + 1, until), bandit, after=after, parent=parent)


def check_chain(rows: Iterable[Row], bandit: int, *, after: int, parent: bytes | None) -> Iterator[Row]:
    """Yield rows that follow row `after`; `DamagedFileError` where one is missing or another."""
    for row in rows:
        if row.first != after + 1:
            raise make_row_error(bandit, after + 1, "it is missing")
        if parent not in (None, row.parent):
            raise make_row_error(bandit, row.seq, "it does not follow from the row before")
        yield row
        after, parent = row.seq, row.link


def read_remaining_rows(connection: SQLConnection, bandit: int) -> Iterator[Row]:
    """Yield the rows from the first that has not been pruned, each checked and none missing."""
    first = read_first_row(connection, bandit)
    if first is not None:
        yield from read_rows(connection, bandit, after=first.first - 1, parent=first.parent)


def read_row(connection: SQLConnection, bandit: int, seq: int) -> Row | None:
    """Return the row that ends with commit `seq`."""
    return next(_select(connection, bandit, seq, seq, limit=1), None)


def read_first_row(connection: SQLConnection, bandit: int) -> Row | None:
    """Return the first row that has not been pruned."""
    return next(_select(connection, bandit, 0, MAX_SEQ, limit=1), None)


def find_row_of_round(connection: SQLConnection, bandit: int, round: int) -> Row | None:
    """Return the first row that ends with that round or a later one, by binary search: rounds only grow."""
    row = None
    with connection:  # one view of the file, since rows may be compacted or pruned meanwhile
        low, high = _find_key_range(connection, bandit)
        if low is not None and high is None:  # SQLite finds no last row where a page has keys out of order
            raise make_row_error(bandit, seq_of(low), "the last row after it cannot be found")
        while low is not None and low < high:
            middle = (low + high) // 2
            found = list(connection.execute(_NEXT_ROW, (middle, key_of(bandit, MAX_SEQ))))
            if not found or not all(type(value) is int for value in found[0]) or middle <= found[0][0] - found[0][1]:
                raise make_row_error(bandit, seq_of(middle), "it is missing, or no row")
            key, _, rounds = found[0]
            low, high = (low, middle) if rounds >= round else (key + 1, high)
        if low is not None:
            row = next(_select(connection, bandit, seq_of(low), MAX_SEQ, limit=1), None)
    return row


def read_rows_from(connection: SQLConnection, bandit: int, round: int) -> Iterator[Row]:
    """Yield the rows from the first that ends with that round or a later one; none where there is no such row."""
    first = find_row_of_round(connection, bandit, round)
    if first is not None:
        yield from read_rows(connection, bandit, after=first.first - 1, parent=first.parent)


def _find_key_range(connection: SQLConnection, bandit: int) -> tuple[Any, Any]:
    """Return the first and the last key of a chain, by two queries: SQLite answers both at once by a full scan."""
    keys = (key_of(bandit, 0), key_of(bandit, MAX_SEQ))
    ((low,),) = connection.execute("SELECT min(key) FROM log WHERE key BETWEEN ? AND ?", keys)
    ((high,),) = connection.execute("SELECT max(key) FROM log WHERE key BETWEEN ? AND ?", keys)
    return low, high


def _select(connection: SQLConnection, bandit: int, first: int, last: int, *, limit: int = MAX_SEQ) -> Iterator[Row]:
    query = "SELECT * FROM log WHERE key BETWEEN ? AND ? ORDER BY key"
    if limit < MAX_SEQ:
        query += f" LIMIT {limit}"
    for columns in connection.execute(query, (key_of(bandit, first), key_of(bandit, last))):
        yield parse_row(bandit, columns)


def parse_row(bandit: int, columns: Sequence[Any]) -> Row:
    """Make a row of a chain from its columns; `DamagedFileError` where they are not a row's, or do not match."""
    key, commits, count, rounds, stamp, parent, last_checksum, checksum, payload = columns
    numbers = {"commits": commits, "count": count, "rounds": rounds, "stamp": stamp}
    if chain_of(key) != bandit:  # a key that SQLite met where it does not belong
        raise make_row_error(bandit, seq_of(key), "its key is out of order")
    try:
        row = make_row(bandit, seq_of(key), **numbers, parent=parent, last_checksum=last_checksum, payload=payload)
    except (TypeError, struct.error):
        raise make_row_error(bandit, seq_of(key), "its columns have the wrong types") from None
    if row.checksum != checksum or len(last_checksum) != (len(GENESIS) if commits > 1 else 0):
        raise make_row_error(bandit, row.seq, "its checksum does not match")
    return row


def make_row_error(bandit: int, seq: int, damage: str) -> DamagedFileError:
    """Return the error that names a damaged row."""
    return DamagedFileError(
        f"row {seq} of chain {bandit} of the log is damaged: {damage}; restore the file from a copy"
    )
