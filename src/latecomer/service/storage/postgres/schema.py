"""The tables of a store on PostgreSQL, and their version: created by `store init`, changed by `store upgrade`.

`log`, `snapshot`, `snapshot_part` and `setting` are SQLite's (`storage.schema`), column for column. `head` has the last
row of every chain: whoever locks a bandit's row may append to its chain. `request` finds the row that answered a
request id; `api_key` has the keys.
"""

import psycopg

from latecomer.errors import FileError, NewerFileError
from latecomer.service.storage.postgres.address import hide_secrets
from latecomer.service.storage.postgres.connection import SCHEMA, PostgresConnection
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
            for statement in filter(None, map(str.strip, _TABLES.split(";"))):
                connection.execute(statement)
            connection.execute("INSERT INTO version VALUES (?)", (VERSION,))
            connection.execute("INSERT INTO head VALUES (?, 0, ?, 0, 0)", (STORE_CHAIN, GENESIS))
    except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject, psycopg.errors.DuplicateTable):
        return False  # another process has made them at the same time
    except psycopg.errors.InsufficientPrivilege as error:
        raise FileError(
            f"{hide_secrets(address)}: the tables cannot be created: {' '.join(str(error).split())}; use a role that "
            "may create a schema"
        ) from None
    finally:
        connection.close()
    return True


def upgrade(address: str) -> tuple[int, int]:
    """Bring the tables to this version; return the versions before and after."""
    connection = PostgresConnection(address)
    try:
        with connection:
            before = number = read_version(connection)
            if not before or before > VERSION:
                check_version(connection, address)
            connection.execute("LOCK TABLE version IN ACCESS EXCLUSIVE MODE")
            while number < VERSION:
                for statement in filter(None, map(str.strip, UPGRADES[number].split(";"))):
                    connection.execute(statement)
                number += 1
            connection.execute("UPDATE version SET number = ?", (number,))
    finally:
        connection.close()
    return before, number


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
