"""Connections to PostgreSQL: how they are opened, and one that the storage's SQL runs on."""

import os
import socket
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Self, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import conninfo_to_dict

from latecomer.errors import FileError
from latecomer.service.storage.postgres.address import check_address, hide_secrets
from latecomer.service.storage.settings_table import read_setting

SCHEMA = "latecomer"
"""The schema of the store's tables."""
HOLD_SECONDS = 1.0
"""Seconds that a session may hold a lock without sending anything, before PostgreSQL ends it."""
STATEMENT_SECONDS = 5.0
"""Seconds that a statement of a request may take, the wait for a lock included."""
USE_SECONDS = 6.0
"""Seconds after which a replica ends a conversation that hears nothing: a network may swallow an answer for ever."""
MAINTENANCE_SECONDS = 30.0
"""Seconds of silence in a snapshot and what follows it: a commit of so much may keep a disk busy."""
TOOL_SECONDS = 600.0
"""Seconds of silence in a command that somebody watches: PostgreSQL may have much to do before it answers."""
READ_HOLD_SECONDS = 3600.0
"""Seconds that a transaction may wait for whoever reads or copies a store: it locks nothing that replicas need."""
CONNECT_SECONDS = 3
DATABASE_ERRORS = (psycopg.Error, OSError)  # a timeout is an OSError
RETRIED = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
"""Errors after which the same transaction may succeed: the database has answered."""
_PAGE = 512
"""Rows of the log that are fetched at a time: a log may be larger than memory."""


def connect_options(address: str) -> dict[str, Any]:
    """Return libpq's options of a connection; those of the address win."""
    check_address(address)
    given = conninfo_to_dict(address)
    options = {
        "autocommit": True,
        "connect_timeout": CONNECT_SECONDS,
        "application_name": f"latecomer {os.getpid()}",
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": int(STATEMENT_SECONDS * 1000),
        "prepare_threshold": None,
    }
    return {name: value for name, value in options.items() if name not in given}


def session_settings(*, hold: float, statement: float | None) -> str:
    """Return the statement that sets a session up: its schema, and its limits in seconds.

    `hold` limits the time that a transaction waits for its client: for the next statement, and until the client takes
    the answer to the last. Databases that have no `tcp_user_timeout` do without the second.
    """
    sending = f"SELECT set_config(name, '{_milliseconds(hold)}', false)"
    return (
        f"SET search_path = {SCHEMA}; SET client_min_messages = warning; SET standard_conforming_strings = on; "
        "SET bytea_output = hex; SET client_encoding = UTF8; "
        f"SET idle_in_transaction_session_timeout = {_milliseconds(hold)}; "
        f"SET lock_timeout = {_milliseconds(statement)}; SET statement_timeout = {_milliseconds(statement)}; "
        + sending
        + " FROM pg_settings WHERE name = 'tcp_user_timeout'"
    )


def _milliseconds(seconds: float | None) -> int:
    return 0 if seconds is None else int(seconds * 1000)


_Answer = TypeVar("_Answer")


class UnreachableError(FileError):
    """A database cannot be reached."""


def make_connect_error(address: str, error: Exception) -> UnreachableError:
    """Return the error that says that a database cannot be reached."""
    reason = " ".join(str(error).split())
    return UnreachableError(
        f"{hide_secrets(address)} cannot be reached: {reason}; check its host, port, user and password, and that "
        "PostgreSQL runs"
    )


@cache
def _translate(statement: str) -> str:
    """Return a statement with PostgreSQL's parameters."""
    return statement.replace("%", "%%").replace("?", "%s")


def cut(connection: "AsyncConnection[Any] | Connection[Any]") -> None:
    """End a connection for good, from any thread: whoever waits for its answer gets an error."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


class _SilentError(Exception):
    """Nothing has been heard for too long."""


class _LimitedConnection(Connection[Any]):
    """A connection that is closed where nothing is heard for some time."""

    silence = TOOL_SECONDS

    def wait(self, gen: Generator[Any, Any, _Answer], *arguments: Any, **named: Any) -> _Answer:
        """Wait for an answer; `psycopg.OperationalError` where the network is silent for too long."""
        try:
            return super().wait(self._limit(gen), *arguments, **named)
        except _SilentError:
            self.close()
            raise psycopg.OperationalError(f"no answer within {self.silence:g} s: the connection is closed") from None

    def _limit(self, gen: Generator[Any, Any, _Answer]) -> Generator[Any, Any, _Answer]:
        """Pass on what psycopg waits for, and whether it has come: it looks up several times a second."""
        heard = time.monotonic()
        ready = None
        while True:
            try:
                waits = gen.send(ready)
            except StopIteration as end:
                answer: _Answer = end.value
                return answer
            ready = yield waits
            if ready:
                heard = time.monotonic()
            elif time.monotonic() - heard > self.silence:
                raise _SilentError


class PostgresConnection:
    """A blocking connection on which the storage's SQL runs as on SQLite: recovery, snapshots, tools.

    Parameters
    ----------
    address
        The database.
    read_only
        Whether every change is refused by PostgreSQL. A transaction then has one view of the database.
    silence
        Seconds without a byte from the database after which a conversation ends.
    hold
        Seconds that a transaction may wait for this process, before PostgreSQL ends it.
    """

    def __init__(
        self, address: str, *, read_only: bool = False, silence: float = TOOL_SECONDS, hold: float = READ_HOLD_SECONDS
    ) -> None:
        try:
            self.raw = _LimitedConnection.connect(address, **connect_options(address))
            self.raw.silence = silence
            self.raw.execute(session_settings(hold=hold, statement=None), prepare=False)
        except psycopg.Error as error:
            raise make_connect_error(address, error) from None
        self._begin = f"BEGIN ISOLATION LEVEL {'REPEATABLE READ READ ONLY' if read_only else 'READ COMMITTED'}"
        self._pages = self._depth = 0

    def execute(self, statements: str, bindings: Any = (), /) -> Iterable[Any]:
        """Run a statement; return its rows. Whole rows of the log are fetched a page at a time, in a transaction."""
        statement = _translate(statements)
        if statements.startswith("SELECT * ") and self._is_in_transaction:
            return self._fetch_pages(statement, bindings)
        cursor = self.raw.execute(statement, bindings, binary=True)
        return cursor.fetchall() if cursor.description else []

    @property
    def _is_in_transaction(self) -> bool:
        return self.raw.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS

    def _fetch_pages(self, statement: str, bindings: Any) -> Iterator[Any]:
        self._pages += 1
        with self.raw.cursor(name=f"page_{self._pages}", binary=True) as cursor:
            cursor.itersize = _PAGE
            cursor.execute(statement, bindings)
            yield from cursor

    def __enter__(self) -> Self:
        """Begin a transaction, or a part of one."""
        self.raw.execute(f"SAVEPOINT level_{self._depth}" if self._depth else self._begin)
        self._depth += 1
        return self

    def __exit__(self, kind: object, error: object, traceback: object, /) -> None:
        """Commit, or roll back where an error leaves the block."""
        self._depth -= 1
        if self.raw.closed:
            return
        if self._depth:
            self.raw.execute(f"{'RELEASE' if kind is None else 'ROLLBACK TO'} SAVEPOINT level_{self._depth}")
        else:
            self.raw.execute("COMMIT" if kind is None else "ROLLBACK")

    def insert_many(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows with one wait; of two requests with the same id the later one is kept."""
        columns = ", ".join(["%s"] * len(rows[0]))
        statement = f"INSERT INTO {table} VALUES ({columns})"  # noqa: S608 - our own name
        if table == "setting":
            statement += " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        if table == "request":
            statement += " ON CONFLICT (bandit, digest) DO UPDATE SET seq = excluded.seq, round = excluded.round"
        self.raw.cursor().executemany(statement, rows)

    def read_time(self) -> int:
        """Return the store's time, which is the database's and the shift, in microseconds since 1970."""
        ((now,),) = self.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")
        return int(now) + int(read_setting(self, "shift", "0"))

    def cut(self) -> None:
        """End the connection from another thread: a conversation that is under way fails."""
        cut(self.raw)

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()
