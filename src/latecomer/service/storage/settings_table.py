"""Settings in the store's file, each with a checksum: retention, whether keys are expected, and the clock."""

import hashlib

from latecomer.errors import DamagedFileError
from latecomer.service.storage.background import Steps
from latecomer.service.storage.clock import Clocks, StoreClock
from latecomer.service.storage.sql import SQLConnection


def read_setting(connection: SQLConnection, name: str, default: str) -> str:
    """Return a setting; `DamagedFileError` where its checksum does not match."""
    found = list(connection.execute("SELECT value FROM setting WHERE name = ?", (name,)))
    return parse_setting(name, str(found[0][0])) if found else default


def parse_setting(name: str, stored: str) -> str:
    """Return the value of a stored setting; `DamagedFileError` where its checksum does not match."""
    value, _, checksum = stored.rpartition(" ")
    if checksum != _compute_checksum(name, value):
        raise DamagedFileError(f"the store's setting {name} is damaged: {stored!r}; restore it from a copy")
    return value


def checked_value(name: str, value: str) -> str:
    """Return a value with the checksum that it is stored with."""
    return f"{value} {_compute_checksum(name, value)}"


def write_settings(connection: SQLConnection, **settings: str) -> Steps:
    """Write settings in one transaction."""
    with connection:
        for name, value in settings.items():
            # Not an upsert: SQLite would write nothing where the value stays, and not notice a full disk.
            connection.execute("DELETE FROM setting WHERE name = ?", (name,))
            connection.execute("INSERT INTO setting VALUES (?, ?)", (name, checked_value(name, value)))
    yield


def check_settings(connection: SQLConnection) -> None:
    """Raise `DamagedFileError` where the checksum of a setting does not match."""
    for (name,) in list(connection.execute("SELECT name FROM setting")):
        read_setting(connection, str(name), "")


def load_clock(connection: SQLConnection, clocks: Clocks, *, latest: int) -> StoreClock:
    """Return the store's clock, which goes on from the saved offset, and from stamp `latest` at least."""
    boot, offset = read_setting(connection, "boot", ""), read_setting(connection, "offset", "0")
    shift = read_setting(connection, "shift", "0")
    return StoreClock(clocks, latest=latest, boot=boot, offset=int(offset), shift=int(shift))


def save_clock(connection: SQLConnection, clock: StoreClock) -> None:
    """Save the clock's offset, before anything is stamped with it."""
    next(write_settings(connection, boot=clock.boot, offset=str(clock.offset)))


def _compute_checksum(name: str, value: str) -> str:
    return hashlib.blake2b(f"{name} {value}".encode(), digest_size=8).hexdigest()
