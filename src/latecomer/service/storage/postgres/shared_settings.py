"""Settings and keys in the database, which every replica reads again twice a second."""

import time
from typing import Any

from latecomer.service.durations import FOREVER, parse_retention
from latecomer.service.storage.postgres.connection import PostgresConnection
from latecomer.service.storage.postgres.replica import Replica
from latecomer.service.storage.settings_table import checked_value, parse_setting, write_settings
from latecomer.service.storage.sqlite_log import DEFAULT_RETENTION

_HEADS = "SELECT bandit, seq FROM head"
_SETTINGS = "SELECT name, value FROM setting"
_KEYS = "SELECT id, record FROM api_key ORDER BY id"
_WRITE = "INSERT INTO setting VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_KEYS_SETTING = "keys"


class SharedSettings:
    """The settings that the database keeps, as of the last look."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._values: dict[str, str] = {}
        self.keys: dict[str, bytes] = {}
        """The records of API keys, by their ids."""
        self.read_at = time.monotonic()
        """When the database was last read, in seconds of `time.monotonic`; at first, when this was made."""
        self.wanted_retention: str | None = None
        self._is_read = False

    def apply(self, values: dict[str, str], keys: dict[str, bytes]) -> None:
        """Take what was read."""
        self._values, self.keys, self.read_at = values, keys, time.monotonic()
        self._is_read = True
        self._replica.retention = parse_retention(values.get("retention", DEFAULT_RETENTION))

    @property
    def retention(self) -> str:
        """The time that decisions stay in the log after their window, once that is known."""
        if not self._is_read:
            return "as in the database"
        retention = self._replica.retention
        return FOREVER if retention is None else f"{retention // 1_000_000}s"

    @property
    def expects_keys(self) -> bool:
        """True once there has been a key."""
        return bool(self.keys) or self._values.get(_KEYS_SETTING) == "yes"


def expect_keys(connection: PostgresConnection) -> None:
    """Note that there has been a key: from now on every replica needs one."""
    next(write_settings(connection, **{_KEYS_SETTING: "yes"}))


async def read_shared(replica: Replica, settings: SharedSettings) -> dict[int, int]:
    """Read settings and keys; write the retention that is wanted; return the last commit of each chain."""
    async with replica.settings_pool.take() as connection:
        wanted = settings.wanted_retention
        if wanted is not None:
            await connection.execute(_WRITE, ("retention", checked_value("retention", wanted)))
            if settings.wanted_retention == wanted:
                settings.wanted_retention = None
        async with connection.pipeline():
            heads = await connection.execute(_HEADS, binary=True)
            values = await connection.execute(_SETTINGS)
            keys = await connection.execute(_KEYS, binary=True)
        found: list[Any] = await values.fetchall()
        settings.apply(
            {name: parse_setting(name, value) for name, value in found},
            {id_: bytes(record) for id_, record in await keys.fetchall()},
        )
        return dict(await heads.fetchall())
