"""Copy a store from a file to a database or back, row by row: every checksum stays, and so does every bit of state."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import apsw

from latecomer.atomic_write import replace_file
from latecomer.errors import FileError, InputError
from latecomer.extras import require_packages
from latecomer.service.bandit import events
from latecomer.service.bandit.events import Payload
from latecomer.service.storage.postgres.address import hide_secrets, is_address
from latecomer.service.storage.private_files import SHARED, WAL
from latecomer.service.storage.recovery import read_descriptors
from latecomer.service.storage.rows import GENESIS, MAX_SEQ, STORE_CHAIN, Row, key_of, read_remaining_rows, read_rows
from latecomer.service.storage.schema import connect, create_file
from latecomer.service.storage.settings_table import read_setting
from latecomer.service.storage.sql import SQLConnection
from latecomer.service.tools.reader import open_reader
from latecomer.service.tools.verify import verify

_BATCH = 256
_KEPT_SETTINGS = ("retention",)
"""Settings that go with the store; those of the clock belong to a machine."""
_INSERTS = {
    "log": "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "snapshot": "INSERT INTO snapshot VALUES (?, ?, ?, ?)",
    "snapshot_part": "INSERT INTO snapshot_part VALUES (?, ?, ?)",
    "setting": "INSERT INTO setting VALUES (?, ?)",
}
Insert = Callable[[str, Sequence[tuple[Any, ...]]], None]
Report = Callable[[int], None]


def copy_store(
    source: str | PathLike[str], target: str | PathLike[str], *, report: Report = lambda _: None
) -> list[str]:
    """Copy a store as of this moment; return the lines of `verify` for the copy.

    Parameters
    ----------
    source
        A store's file, or the address of a database. It may be in use.
    target
        A file that does not exist, or a database whose store is empty (`latecomer store init`).
    report
        Called with the number of rows copied so far.
    """
    with open_reader(source) as connection:
        if int(read_setting(connection, "shift", "0")):
            raise InputError(
                f"the clock of {source} was adjusted (`latecomer log adjust-clock`), which a copy cannot keep: replay "
                "its bandits into a new store once their windows have closed"
            )
        if is_address(target):
            return _copy_to_database(connection, os.fspath(target), report)
        return _copy_to_file(connection, Path(target), report)


def _copy_to_file(source: SQLConnection, target: Path, report: Report) -> list[str]:
    if os.path.lexists(target):
        raise InputError(f"the copy needs a path of its own; {target} is there already: choose another")
    try:
        with replace_file(target, private=True) as part:
            create_file(part)
            copy = connect(part, write=True)
            try:
                with copy:
                    _copy_rows(source, lambda table, rows: _insert_many(copy, table, rows), report, database=False)
                copy.pragma("wal_checkpoint", "truncate")
            finally:
                copy.close()
                for suffix in (WAL, SHARED):
                    Path(f"{part}{suffix}").unlink(missing_ok=True)
            return list(verify(part, name=target))
    except apsw.Error as error:
        raise FileError(f"{target} could not be written: {error}") from error
    except OSError as error:
        raise FileError(f"{target} could not be written: {error.strerror or error}") from error


def _insert_many(connection: apsw.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany(_INSERTS[table], rows)


def _copy_to_database(source: SQLConnection, address: str, report: Report) -> list[str]:
    require_packages("a store on PostgreSQL", "psycopg")
    import psycopg  # noqa: PLC0415 - an extra of its own

    from latecomer.service.storage.postgres.connection import PostgresConnection  # noqa: PLC0415
    from latecomer.service.storage.postgres.schema import check_version  # noqa: PLC0415

    shown = hide_secrets(address)
    try:
        with closing(PostgresConnection(address)) as copy:
            check_version(copy, address)
            with copy:
                copy.execute("LOCK TABLE head IN ACCESS EXCLUSIVE MODE")  # a replica that runs waits for the end
                if next(iter(copy.execute("SELECT count(*) FROM log")))[0]:
                    raise InputError(f"the store of {shown} must be empty; it has bandits: choose another database")
                copy.execute("DELETE FROM head")
                _copy_rows(source, copy.insert_many, report, database=True)
    except psycopg.Error as error:
        raise FileError(f"{shown} could not be written: {' '.join(str(error).split())}") from error
    return list(verify(address))


def _copy_rows(source: SQLConnection, insert: Insert, report: Report, *, database: bool) -> None:
    """Copy the store's own chain, the chains of all bandits, their snapshots and the settings."""
    alive, _ = read_descriptors(source, {})
    copied = _copy_chain(read_rows(source, STORE_CHAIN, after=0, parent=GENESIS), STORE_CHAIN, insert, database)
    for number, descriptor in alive.items():
        rows = _report_rows(read_remaining_rows(source, number), copied, report)
        copied += _copy_chain(rows, number, insert, database, dim=descriptor.spec.dim)
        keys = (key_of(number, 0), key_of(number, MAX_SEQ))
        for table in ("snapshot", "snapshot_part"):
            query = f"SELECT * FROM {table} WHERE key BETWEEN ? AND ? ORDER BY key"  # noqa: S608 - our own name
            for row in source.execute(query, keys):
                insert(table, [tuple(row)])
    found = list(source.execute("SELECT name, value FROM setting"))
    if kept := [(name, value) for name, value in found if name in _KEPT_SETTINGS]:
        insert("setting", kept)


def _report_rows(rows: Iterator[Row], before: int, report: Report) -> Iterator[Row]:
    for number, row in enumerate(rows, before + 1):
        if number % _BATCH == 0:
            report(number)
        yield row


def _copy_chain(rows: Iterator[Row], number: int, insert: Insert, database: bool, *, dim: int = 0) -> int:
    """Copy the rows of a chain; for a database, also its head and its requests. Return the number of rows."""
    head, copied = (number, 0, GENESIS, 0, 0), 0
    while batch := list(islice(rows, _BATCH)):
        insert("log", [_to_columns(row) for row in batch])
        copied += len(batch)
        last = batch[-1]
        head = (number, last.seq, last.link, last.stamp, 0)
        requests = [request for row in batch for request in _list_requests(row, dim)] if database and dim else []
        if requests:
            insert("request", requests)
    if database:
        insert("head", [head])
    return copied


def _to_columns(row: Row) -> tuple[Any, ...]:
    numbers = (key_of(row.bandit, row.seq), row.commits, row.count, row.rounds, row.stamp)
    return (*numbers, row.parent, row.last_checksum, row.checksum, row.payload)


def _list_requests(row: Row, dim: int) -> list[tuple[Any, ...]]:
    """Return the requests of a row, with the commit and the round that answered each."""
    decided = Payload(row.payload, dim).records(events.DECISION_WITH_REQUEST)
    pairs = zip(decided["request"].tolist(), decided["round"].tolist(), strict=True)
    return [(row.bandit, digest, row.seq, round_) for digest, round_ in pairs]
