"""API keys in the database of a replicated store: all replicas know of a change within a second."""

from contextlib import closing
from time import monotonic
from typing import Any

import msgspec
import psycopg

from latecomer.errors import DamagedFileError, FileError
from latecomer.service.http.keys import EditableKeys, Key, Keys
from latecomer.service.storage.postgres.address import hide_secrets
from latecomer.service.storage.postgres.connection import PostgresConnection, make_connect_error
from latecomer.service.storage.postgres.schema import check_version
from latecomer.service.storage.postgres.shared_settings import SharedSettings, expect_keys

_STALE = 5.0
"""Seconds after which keys that could not be read again are not relied on."""


class SharedKeys(Keys):
    """The keys that a replica has last read from the database."""

    def __init__(self, address: str, settings: SharedSettings) -> None:
        self.path: str = hide_secrets(address)
        self._settings = settings
        self._records: dict[str, bytes] = {}
        self._keys: dict[str, Key] = {}

    def recent(self) -> dict[str, Key] | None:
        """Return `keys()`."""
        return self.keys()

    def keys(self) -> dict[str, Key] | None:
        """Return the keys by id; None where there have never been any. `FileError` where they may be out of date."""
        settings = self._settings
        if monotonic() - settings.read_at > _STALE:
            raise FileError(
                f"the keys in {self.path} have not been read for {_STALE:g} s: the database does not answer"
            )
        if self._records is not settings.keys:
            self._keys = {id_: _decode(record, self.path) for id_, record in settings.keys.items()}
            self._records = settings.keys
        return self._keys if settings.expects_keys else None


class KeyTable(EditableKeys):
    """The keys in a database, for a command."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.path: str = hide_secrets(address)

    def recent(self) -> dict[str, Key] | None:
        """Return `keys()`."""
        return self.keys()

    def keys(self) -> dict[str, Key] | None:
        """Return the keys by id."""
        found = self._execute("SELECT id, record FROM api_key ORDER BY id")
        return {id_: _decode(bytes(record), self.path) for id_, record in found}

    def add_record(self, key: Key) -> None:
        """Add a key; from now on every replica needs one."""
        self._execute("INSERT INTO api_key VALUES (?, ?)", (key.id, msgspec.json.encode(key)), expect=True)

    def remove_record(self, id_: str) -> Key | None:
        """Remove a key; keys are still needed afterwards."""
        found = self._execute("DELETE FROM api_key WHERE id = ? RETURNING record", (id_,))
        return _decode(bytes(found[0][0]), self.path) if found else None

    def _execute(self, statement: str, values: tuple[object, ...] = (), *, expect: bool = False) -> list[Any]:
        try:
            with closing(PostgresConnection(self._address)) as connection:
                check_version(connection, self._address)
                with connection:
                    if expect:
                        expect_keys(connection)
                    return list(connection.execute(statement, values))
        except psycopg.Error as error:
            raise make_connect_error(self._address, error) from None


def _decode(record: bytes, path: str) -> Key:
    try:
        return msgspec.json.decode(record, type=Key)
    except msgspec.MsgspecError as error:
        raise DamagedFileError(f"a key in {path} is damaged: {error}; revoke it, and make another") from None
