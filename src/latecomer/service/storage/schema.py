"""The SQLite file of a store: its tables, its format number, and connections to it."""

import os
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import apsw

from latecomer.errors import DamagedFileError, FileError, NewerFileError, NoRoomError
from latecomer.service.storage.lock import was_created
from latecomer.service.storage.private_files import SHARED, WAL

FORMAT = 6
_APPLICATION = 0x4C617465  # "Late"
_SQLITE, _HEADER_SIZE = b"SQLite format 3\0", 100
_PAGE_SIZE = 16_384
"""A commit's row is a few kilobytes: larger pages waste less of their space."""
_TABLES = """
CREATE TABLE log (
    key INTEGER PRIMARY KEY, commits INTEGER NOT NULL, count INTEGER NOT NULL, rounds INTEGER NOT NULL,
    stamp INTEGER NOT NULL, parent BLOB NOT NULL, last_checksum BLOB NOT NULL, checksum BLOB NOT NULL,
    payload BLOB NOT NULL);
CREATE TABLE snapshot (
    key INTEGER PRIMARY KEY, oldest INTEGER NOT NULL, row_checksum BLOB NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE snapshot_part (
    key INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, part));
CREATE TABLE request_manifest (bandit INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE request_filter (key INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE request_bucket (key INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


def create_tables(path: Path) -> None:
    """Make an empty store of an empty file; all of it is in the file itself, and nothing in a write-ahead log."""
    connection = apsw.Connection(fspath(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.pragma("page_size", _PAGE_SIZE)
    connection.pragma("synchronous", "full")
    with connection:
        connection.pragma("application_id", _APPLICATION)
        connection.pragma("user_version", FORMAT)
        connection.execute(_TABLES)
    connection.pragma("journal_mode", "wal")
    connection.close()


def check_is_store(path: Path) -> None:
    """Raise `DamagedFileError` where a file that is not empty is of another kind, and has never been a store.

    SQLite's name and the number of the application are in the first 100 bytes. A store that has lost these is damaged,
    and its lock file says that it was one.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_SIZE)
    except OSError:
        return  # SQLite says why it cannot be read
    is_store = header.startswith(_SQLITE) and header[68:72] == _APPLICATION.to_bytes(4)
    if header and not is_store and not was_created(path):
        raise DamagedFileError(f"{path} is not a Latecomer store: check the path")


def connect(path: str | PathLike[str], *, write: bool) -> apsw.Connection:
    """Open a connection to a store, to read or to write."""
    if not Path(path).is_file():
        raise FileError(f"{fspath(path)} is not there: check the path")
    check_is_store(Path(path))
    try:
        connection = _open(os.path.realpath(path), write=write)
        connection.set_busy_timeout(5000)
        connection.pragma("synchronous", "full")
        connection.pragma("journal_size_limit", 64 << 20)
        connection.pragma("query_only", not write)
        _check_format(connection, fspath(path))
    except apsw.Error as error:
        raise make_read_error(path, error) from error
    return connection


def connect_immutable(path: Path) -> apsw.Connection:
    """Open a read-only connection to a store that nobody writes to; it needs no room on the disk.

    It does not read the write-ahead log: `NoRoomError` where there is one.
    """
    ahead = path.with_name(path.name + WAL)
    if ahead.exists() and ahead.stat().st_size:
        raise NoRoomError(f"{path} cannot be read with {ahead.name} on a disk that is full: make room on it")
    try:
        connection = _open_immutable(path.absolute())
        _check_format(connection, fspath(path))
    except apsw.Error as error:
        raise make_read_error(path, error) from error
    return connection


def _open(name: str, *, write: bool) -> apsw.Connection:
    """Open the file, also where the folder is read-only and SQLite cannot make its shared-memory file.

    A store without a `-shm` file beside it is open nowhere. Its write-ahead log must still be read.
    """
    if write or os.access(Path(name).parent, os.W_OK) or Path(name + SHARED).exists():
        return apsw.Connection(name, flags=apsw.SQLITE_OPEN_READWRITE)
    ahead = Path(name + WAL)
    if ahead.exists() and ahead.stat().st_size:
        connection = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY, vfs="unix-none")  # locks are impossible
        connection.pragma("locking_mode", "exclusive")  # keeps the index of the WAL in this process's memory
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


def make_read_error(path: str | PathLike[str], error: Exception) -> FileError:
    """Return the error that says what SQLite could not do with the file, and what to do about it."""
    if not isinstance(error, apsw.Error) or isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return DamagedFileError(f"{fspath(path)} is damaged: {error}; restore it from a copy")
    if isinstance(error, apsw.FullError) or getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        return NoRoomError(f"{fspath(path)} cannot be opened: {error}; make room on the disk")
    return FileError(f"{fspath(path)} cannot be read: {error}")
