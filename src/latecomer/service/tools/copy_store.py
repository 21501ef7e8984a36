"""Copy a store from a file to a database or back, row by row: every checksum stays, and so does every bit of state."""

import os
import time
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
from latecomer.service.storage.schema import connect, create_tables
from latecomer.service.storage.settings_table import read_setting
from latecomer.service.storage.sql import SQLConnection
from latecomer.service.tools.reader import open_reader
from latecomer.service.tools.verify import verify

_BATCH = 256
_KEPT_SETTINGS = ("retention", "shift")
"""Settings that go with the store; the clock's offset belongs to a machine."""
_MAX_WAIT = 60.0
"""Seconds by which a store's time may be ahead of a database's: a copy waits for so long."""
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
        if is_address(target):
            return _copy_to_database(connection, hide_secrets(os.fspath(source)), os.fspath(target), report)
        return _copy_to_file(connection, Path(target), report)


def _copy_to_file(source: SQLConnection, target: Path, report: Report) -> list[str]:
    if os.path.lexists(target):
        raise InputError(f"the copy needs a path of its own; {target} is there already: choose another")
    try:
        with replace_file(target, private=True) as part:
            create_tables(part)
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


def _copy_to_database(source: SQLConnection, name: str, address: str, report: Report) -> list[str]:
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
                latest = _read_latest(source) - int(read_setting(source, "shift", "0"))
                _check_lead(name, shown, (latest - copy.read_time()) / 1e6)
                copy.execute("DELETE FROM head")
                _copy_rows(source, copy.insert_many, report, database=True)
                time.sleep(max(0.0, (_read_latest(copy) - copy.read_time()) / 1e6))
    except psycopg.Error as error:
        raise FileError(f"{shown} could not be written: {' '.join(str(error).split())}") from error
    return list(verify(address))


def _read_latest(connection: SQLConnection) -> int:
    """Return the latest stamp of a store; those of a chain never run backwards."""
    alive, _ = read_descriptors(connection, {})
    query = "SELECT stamp FROM log WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1"
    chains = (STORE_CHAIN, *alive)
    found = [list(connection.execute(query, (key_of(chain, 0), key_of(chain, MAX_SEQ)))) for chain in chains]
    return max((int(rows[0][0]) for rows in found if rows), default=0)


def _check_lead(source: str, target: str, lead: float) -> None:
    """Raise `InputError` where a store's time is so far ahead that no decision could follow its last one."""
    if lead > _MAX_WAIT:
        adjusted = "copy it to a file, and that one after `latecomer log adjust-clock`"
        if not is_address(source):
            adjusted = f"run `latecomer log adjust-clock {source}` first"
        raise InputError(
            f"the time of {source} is {lead:,.0f} s ahead of the database's time, and time cannot go back: where the "
            f"clock of {target} is right, {adjusted}"
        )


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
