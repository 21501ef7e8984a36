"""The tables of a store on PostgreSQL, and their version: created by `store init`, changed by `store upgrade`.

`log`, `snapshot`, `snapshot_part` and `setting` are SQLite's (`storage.schema`), column for column. `head` has the last
row of every chain: whoever locks a bandit's row may append to its chain. `request` finds the row that answered a
request id; `api_key` has the keys.
"""

from collections.abc import Mapping
from contextlib import closing

import psycopg

from latecomer.errors import FileError, NewerFileError
from latecomer.service.storage.postgres.address import hide_secrets
from latecomer.service.storage.postgres.connection import SCHEMA, USE_SECONDS, PostgresConnection, make_connect_error
from latecomer.service.storage.rows import GENESIS, STORE_CHAIN

VERSION = 1
_TABLES = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE log (
    key bigint PRIMARY KEY, commits bigint NOT NULL, count bigint NOT NULL, rounds bigint NOT NULL,
    stamp bigint NOT NULL, parent bytea NOT NULL, last_checksum bytea NOT NULL, checksum bytea NOT NULL,
    payload bytea NOT NULL);
CREATE TABLE snapshot (
    key bigint PRIMARY KEY, oldest bigint NOT NULL, row_checksum bytea NOT NULL, checksum bytea NOT NULL);
CREATE TABLE snapshot_part (
    key bigint NOT NULL, part bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (key, part));
CREATE TABLE setting (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE head (
    bandit bigint PRIMARY KEY, seq bigint NOT NULL, checksum bytea NOT NULL, stamp bigint NOT NULL,
    unsaved bigint NOT NULL);
CREATE TABLE request (bandit bigint NOT NULL, digest bytea NOT NULL, seq bigint NOT NULL, round bigint NOT NULL,
    PRIMARY KEY (bandit, digest));
CREATE INDEX request_by_seq ON request (bandit, seq);
CREATE TABLE api_key (id text PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE version (number bigint NOT NULL);
"""
UPGRADES: dict[int, str] = {}
"""The statements that lead from a version to the next."""


def read_version(connection: PostgresConnection) -> int:
    """Return the version of the tables; 0 where there are none."""
    found = "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = 'version'"
    ((tables,),) = connection.execute(found, (SCHEMA,))
    if not tables:
        return 0
    ((number,),) = connection.execute("SELECT number FROM version")
    return int(number)


def initialise(address: str) -> bool:
    """Create the tables of a store in a database; return False where they are there already."""
    connection = PostgresConnection(address)
    try:
        with connection:
            if read_version(connection):
                check_version(connection, address)
                return False
            _execute_all(connection, _TABLES)
            connection.execute("INSERT INTO version VALUES (?)", (VERSION,))
            connection.execute("INSERT INTO head VALUES (?, 0, ?, 0, 0)", (STORE_CHAIN, GENESIS))
    except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject, psycopg.errors.DuplicateTable):
        return False  # another process has made them at the same time
    except psycopg.errors.InsufficientPrivilege as error:
        raise _make_privilege_error(address, error, "use a role that may create a schema") from None
    finally:
        connection.close()
    return True


def _execute_all(connection: PostgresConnection, statements: str) -> None:
    for statement in filter(None, map(str.strip, statements.split(";"))):
        connection.execute(statement)


def _make_privilege_error(address: str, error: Exception, remedy: str) -> FileError:
    reason = " ".join(str(error).split())
    return FileError(f"{hide_secrets(address)}: the tables cannot be made: {reason}; {remedy}")


def upgrade(address: str, *, version: int = VERSION, upgrades: Mapping[int, str] = UPGRADES) -> tuple[int, int]:
    """Bring the tables to a version, whole or not at all; return the versions before and after.

    `upgrades` has the statements that lead from a version to the next.
    """
    connection = PostgresConnection(address)
    try:
        if not 0 < read_version(connection) <= version:
            check_version(connection, address)
        with connection:  # the lock comes first: two that had read the version would wait for each other
            connection.execute("LOCK TABLE version IN ACCESS EXCLUSIVE MODE")
            before = read_version(connection)  # another process may have been faster
            for number in range(before, version):
                _execute_all(connection, upgrades[number])
            connection.execute("UPDATE version SET number = ?", (version,))
    except psycopg.errors.InsufficientPrivilege as error:
        raise _make_privilege_error(address, error, "use the role that owns them") from None
    finally:
        connection.close()
    return before, version


def check_version(connection: PostgresConnection, address: str) -> None:
    """Raise `FileError` where the tables are missing, or of another version."""
    number, shown = read_version(connection), hide_secrets(address)
    if number == 0:
        raise FileError(f"{shown} has no store: make one with `latecomer store init {shown}`")
    if number > VERSION:
        raise NewerFileError(f"{shown} has version {number}, and this Latecomer reads up to {VERSION}: update")
    if number < VERSION:
        raise FileError(
            f"{shown} has version {number}: run `latecomer store upgrade {shown}` with all replicas stopped"
        )


def check_reachable(address: str) -> None:
    """Raise `FileError` where a database cannot be reached or has no store of this version."""
    try:
        with closing(PostgresConnection(address, read_only=True, silence=USE_SECONDS)) as connection:
            check_version(connection, address)
    except psycopg.Error as error:
        raise make_connect_error(address, error) from None
