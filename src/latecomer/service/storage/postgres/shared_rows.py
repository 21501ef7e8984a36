"""Rows of a bandit on a database, read by a thread of their own; and how many replicas have connections to it."""

from collections.abc import Iterator

import psycopg

from latecomer.errors import StoreError
from latecomer.service.storage.postgres.connection import USE_SECONDS, PostgresConnection, UnreachableError
from latecomer.service.storage.rows import Row, read_rows_from

_COUNT = (
    "SELECT count(DISTINCT (client_addr, application_name)) FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name LIKE 'latecomer %'"
)


def read_shared_rows(address: str, number: int, round: int, *, silence: float = USE_SECONDS) -> Iterator[Row]:
    """Yield a bandit's rows from the one that has a round on, as of one moment; `StoreError` where they cannot be.

    `silence` has the seconds without a byte from the database after which it is given up.
    """
    try:
        connection = PostgresConnection(address, read_only=True, silence=silence)
        try:
            with connection:
                yield from read_rows_from(connection, number, round)
        finally:
            connection.close()
    except (psycopg.Error, OSError, UnreachableError) as error:
        raise StoreError("the database does not answer: the log cannot be read until it does") from error


def count_replicas(address: str, *, silence: float = USE_SECONDS) -> int | None:
    """Count the processes that are connected to the database as a replica; None where it cannot tell.

    `silence` is that of `read_shared_rows`.
    """
    try:
        connection = PostgresConnection(address, read_only=True, silence=silence)
        try:
            ((count,),) = connection.execute(_COUNT)
        finally:
            connection.close()
    except (psycopg.Error, OSError, UnreachableError):
        return None
    return int(count)
