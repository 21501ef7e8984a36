"""Read a store as of one moment, a file or a database; its owner or its replicas may go on writing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

import apsw

from latecomer.errors import FileError, UnknownBanditError
from latecomer.extras import require_packages
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.storage.postgres.address import hide_secrets, is_address
from latecomer.service.storage.recovery import read_descriptors
from latecomer.service.storage.schema import connect, make_read_error
from latecomer.service.storage.sql import SQLConnection
from latecomer.validation import short_repr


@contextmanager
def open_reader(store: str | PathLike[str]) -> Iterator[SQLConnection]:
    """Open a connection with one view of a store; `FileError` where it cannot be read."""
    if is_address(store):
        with _open_database(os.fspath(store)) as shared:
            yield shared
        return
    connection = connect(store, write=False)
    try:
        connection.execute("BEGIN")
        yield connection
    except apsw.Error as error:
        raise make_read_error(store, error) from error
    finally:
        connection.close()


@contextmanager
def _open_database(address: str) -> Iterator[SQLConnection]:
    require_packages("a store on PostgreSQL", "psycopg")
    import psycopg  # noqa: PLC0415 - an extra of its own

    from latecomer.service.storage.postgres.connection import PostgresConnection  # noqa: PLC0415
    from latecomer.service.storage.postgres.schema import check_version  # noqa: PLC0415

    connection = PostgresConnection(address, read_only=True)
    try:
        check_version(connection, address)
        with connection:
            yield connection
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise FileError(f"{hide_secrets(address)} cannot be read: {reason}") from error
    finally:
        connection.close()


def find_descriptor(connection: SQLConnection, name: str) -> BanditDescriptor:
    """Return the descriptor of a bandit; `UnknownBanditError` where there is none such."""
    alive, _ = read_descriptors(connection, {})
    for descriptor in alive.values():
        if descriptor.name == name:
            return descriptor
    names = ", ".join(descriptor.name for descriptor in alive.values())
    raise UnknownBanditError(f"there is no bandit {short_repr(name)}; there are: {names}")
