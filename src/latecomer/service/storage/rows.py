"""The log: rows in one SQLite file, each the events of one bandit in one commit, chained by checksums.

A row's key is bandit · 2⁴⁰ + sequence number, so a bandit's rows are neighbours, numbered 1, 2, … without gaps. Its
checksum covers its number, its contents and the checksum of the row before: what is missing, swapped or changed shows,
and is refused by name. Small rows that follow each other may be bound into one (`storage.compaction`): it has
the last one's number, says how many they were, and what the row after it must say came before. Chain 0 is the store's
own: which bandits were created and deleted.
"""

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from latecomer.errors import DamagedFileError, FileError, NewerFileError, NoRoomError
from latecomer.service.storage.private_files import SHARED, WAL, create_private

FORMAT = 4
_APPLICATION = 0x4C617465  # "Late"
_PAGE = 16_384
"""A commit's row is a few kilobytes: larger pages leave less of themselves empty."""
_SHIFT = 40
LAST = (1 << _SHIFT) - 1
"""The largest number that a row can have."""
STORE = 0
"""The chain of the store itself."""
GENESIS = bytes(16)
"""What the first row of a chain says came before it."""

_HEADER = struct.Struct("<qqqqq")
_SCHEMA = """
CREATE TABLE log (
    key INTEGER PRIMARY KEY, span INTEGER NOT NULL, count INTEGER NOT NULL, rounds INTEGER NOT NULL,
    stamp INTEGER NOT NULL, before BLOB NOT NULL, after BLOB NOT NULL, checksum BLOB NOT NULL, payload BLOB NOT NULL);
CREATE TABLE snapshot (
    key INTEGER PRIMARY KEY, oldest INTEGER NOT NULL, anchor BLOB NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE part (key INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, part));
CREATE TABLE request_manifest (bandit INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE request_filter (key INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE request_bucket (key INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_AT = "SELECT key, span, rounds FROM log WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1"
_INSERT = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Row(Struct, frozen=True):
    """A row: its place in the chain, the bandit's rounds and latest stamp after it, and its events.

    A bound row stands for `span` commits, of which `seq` was the last, and `after` is that one's checksum; the row of
    one commit has no such thing, for it has its own.
    """

    bandit: int
    seq: int
    span: int
    count: int
    rounds: int
    stamp: int
    before: bytes
    after: bytes
    checksum: bytes
    payload: bytes

    @property
    def first(self) -> int:
        """The first commit that it stands for."""
        return self.seq - self.span + 1

    @property
    def link(self) -> bytes:
        """What the next row says came before it."""
        return self.after or self.checksum


def key_of(bandit: int, seq: int) -> int:
    """Where a row lives."""
    return (bandit << _SHIFT) + seq


def seq_of(key: int) -> int:
    """A row's number within its chain."""
    return key & LAST


def make_row(
    bandit: int,
    seq: int,
    *,
    span: int = 1,
    count: int,
    rounds: int,
    stamp: int,
    before: bytes,
    after: bytes = b"",
    payload: bytes,
) -> Row:
    """A row with its checksum: BLAKE2b, 16 bytes, over what came before, key and numbers, `after`, and the events."""
    digest = hashlib.blake2b(before, digest_size=16)
    digest.update(_HEADER.pack(key_of(bandit, seq), span, count, rounds, stamp) + after)
    digest.update(payload)
    return Row(bandit, seq, span, count, rounds, stamp, before, after, digest.digest(), payload)


def make(path: Path) -> None:
    """An empty log; whole, and in the file itself, before anything is written ahead of it."""
    with suppress(FileExistsError):  # an empty file of somebody's own making
        os.close(create_private(path))  # what SQLite puts beside it gets the same mode
    connection = apsw.Connection(fspath(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.pragma("page_size", _PAGE)
    connection.pragma("synchronous", "full")
    with connection:
        connection.pragma("application_id", _APPLICATION)
        connection.pragma("user_version", FORMAT)
        connection.execute(_SCHEMA)
    connection.pragma("journal_mode", "wal")
    connection.close()


def connect(path: str | PathLike[str], *, write: bool) -> apsw.Connection:
    """A connection to a log, to read or to write."""
    if not Path(path).is_file():
        raise FileError(f"{fspath(path)} is not there")
    try:
        connection = _open(os.path.realpath(path), write=write)
        connection.set_busy_timeout(5000)
        connection.pragma("synchronous", "full")
        connection.pragma("journal_size_limit", 64 << 20)
        connection.pragma("query_only", not write)
        _check_format(connection, fspath(path))
    except apsw.Error as error:
        raise unreadable(path, error) from error
    return connection


def connect_unchanging(path: Path) -> apsw.Connection:
    """A connection to a log that nobody writes to, for its owner: it needs no room on the disk, and cannot write.

    It does not look at the write-ahead log: `NoRoomError` where there is one.
    """
    ahead = path.with_name(path.name + WAL)
    if ahead.exists() and ahead.stat().st_size:
        raise NoRoomError(f"{path} cannot be read with {ahead.name} on a disk that is full: make room on it")
    try:
        connection = _open_immutable(path.absolute())
        _check_format(connection, fspath(path))
    except apsw.Error as error:
        raise unreadable(path, error) from error
    return connection


def _open(name: str, *, write: bool) -> apsw.Connection:
    """Open the file, also where nothing can be written beside it, and SQLite has no place for what readers share.

    Nobody has a log open that has no such file (`-shm`) beside it. What is written ahead of it must still be read.
    """
    if write or os.access(Path(name).parent, os.W_OK) or Path(name + SHARED).exists():
        return apsw.Connection(name, flags=apsw.SQLITE_OPEN_READWRITE)
    ahead = Path(name + WAL)
    if ahead.exists() and ahead.stat().st_size:
        connection = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY, vfs="unix-none")  # no locks to be had
        connection.pragma("locking_mode", "exclusive")  # and so the index of what is ahead is in this process's memory
        return connection
    return _open_immutable(Path(name))


def _open_immutable(path: Path) -> apsw.Connection:
    return apsw.Connection(f"{path.as_uri()}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _check_format(connection: apsw.Connection, name: str) -> None:
    if connection.pragma("application_id") != _APPLICATION:
        raise DamagedFileError(f"{name} is not a log of Latecomer: give a path of its own, or restore it from a copy")
    version: Any = connection.pragma("user_version")
    if version > FORMAT:
        raise NewerFileError(f"{name} has format {version}, and this Latecomer reads up to {FORMAT}: update")
    if version < FORMAT:
        raise FileError(
            f"{name} has format {version}, from before the first release, which nobody reads: begin a new one"
        )
    is_immutable = bool(connection.open_flags & apsw.SQLITE_OPEN_URI)
    if connection.pragma("journal_mode") != "wal" and not is_immutable:
        raise DamagedFileError(f"{name} is not kept with a write-ahead log: restore it from a copy")


def unreadable(path: str | PathLike[str], error: Exception) -> FileError:
    """What SQLite found, in our words."""
    if not isinstance(error, apsw.Error) or isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return DamagedFileError(f"{fspath(path)} is damaged: {error}; restore it from a copy")
    if isinstance(error, apsw.FullError) or getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        return NoRoomError(f"{fspath(path)} cannot be opened: {error}; make room on the disk")
    return FileError(f"{fspath(path)} cannot be read: {error}")


def append(connection: apsw.Connection, row: Row) -> None:
    """Write one row; a row that is there already, from an attempt whose end was not seen, is left as it is."""
    key = key_of(row.bandit, row.seq)
    numbers = (key, row.span, row.count, row.rounds, row.stamp)
    try:
        connection.execute(_INSERT, (*numbers, row.before, row.after, row.checksum, row.payload))
    except apsw.ConstraintError:
        there = list(connection.execute("SELECT checksum FROM log WHERE key = ?", (key,)))
        if there != [(row.checksum,)]:
            raise


def rows(
    connection: apsw.Connection, bandit: int, *, after: int, before: bytes | None, until: int = LAST
) -> Iterator[Row]:
    """The rows after number `after`, whose checksum is `before` (None: not known), each checked and none missing."""
    for row in _read(connection, bandit, after + 1, until):
        if row.first != after + 1:
            raise damaged(bandit, after + 1, "it is missing")
        if before not in (None, row.before):
            raise damaged(bandit, row.seq, "it does not follow from the row before")
        yield row
        after, before = row.seq, row.link


def row_at(connection: apsw.Connection, bandit: int, seq: int) -> Row | None:
    """The row that ends with that commit."""
    return next(_read(connection, bandit, seq, seq), None)


def first_row(connection: apsw.Connection, bandit: int) -> Row | None:
    """The first row that has not been pruned."""
    return next(_read(connection, bandit, 0, LAST), None)


def row_of_round(connection: apsw.Connection, bandit: int, round: int) -> Row | None:
    """The first row that ends with that round or a later one: rounds only grow, so halving finds it."""
    row = None
    with connection:  # one view of the file, for rows may be bound or pruned meanwhile
        low, high = _ends(connection, bandit)
        while low is not None and low < high:
            middle = (low + high) // 2
            found = list(connection.execute(_AT, (middle, key_of(bandit, LAST))))
            if not found or not all(type(value) is int for value in found[0]) or middle <= found[0][0] - found[0][1]:
                raise damaged(bandit, seq_of(middle), "it is missing, or no row")
            key, _, rounds = found[0]
            low, high = (low, middle) if rounds >= round else (key + 1, high)
        if low is not None:
            row = next(_read(connection, bandit, seq_of(low), LAST), None)
    return row


def _ends(connection: apsw.Connection, bandit: int) -> tuple[Any, Any]:
    """The first and the last key of a chain. SQLite would find both at once by reading all between."""
    span = (key_of(bandit, 0), key_of(bandit, LAST))
    ((low,),) = connection.execute("SELECT min(key) FROM log WHERE key BETWEEN ? AND ?", span)
    ((high,),) = connection.execute("SELECT max(key) FROM log WHERE key BETWEEN ? AND ?", span)
    return low, high


def _read(connection: apsw.Connection, bandit: int, first: int, last: int) -> Iterator[Row]:
    query = "SELECT * FROM log WHERE key BETWEEN ? AND ? ORDER BY key"
    for values in connection.execute(query, (key_of(bandit, first), key_of(bandit, last))):
        key, span, count, rounds, stamp, before, after, checksum, payload = values
        numbers = {"span": span, "count": count, "rounds": rounds, "stamp": stamp}
        try:
            row = make_row(bandit, seq_of(key), **numbers, before=before, after=after, payload=payload)
        except (TypeError, struct.error):
            raise damaged(bandit, seq_of(key), "its columns have the wrong types") from None
        if row.checksum != checksum or len(after) != (len(GENESIS) if span > 1 else 0):
            raise damaged(bandit, row.seq, "its checksum does not match")
        yield row


def damaged(bandit: int, seq: int, what: str) -> DamagedFileError:
    """The error that names a row."""
    return DamagedFileError(f"row {seq} of chain {bandit} of the log is damaged: {what}; restore the file from a copy")
