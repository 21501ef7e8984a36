"""Settings in the store's file, each with a checksum: retention, whether keys are expected, and the clock."""

import hashlib

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.storage.background import Steps
from latecomer.service.storage.clock import Clocks, StoreClock


def read_setting(connection: apsw.Connection, name: str, default: str) -> str:
    """Return a setting; `DamagedFileError` where its checksum does not match."""
    found = list(connection.execute("SELECT value FROM setting WHERE name = ?", (name,)))
    if not found:
        return default
    value, _, checksum = str(found[0][0]).rpartition(" ")
    if checksum != _compute_checksum(name, value):
        raise DamagedFileError(f"the store's setting {name} is damaged: {found[0][0]!r}; restore it from a copy")
    return value


def write_settings(connection: apsw.Connection, **settings: str) -> Steps:
    """Write settings in one transaction."""
    with connection:
        for name, value in settings.items():
            checked = f"{value} {_compute_checksum(name, value)}"
            connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, checked))
    yield


def check_settings(connection: apsw.Connection) -> None:
    """Raise `DamagedFileError` where the checksum of a setting does not match."""
    for (name,) in list(connection.execute("SELECT name FROM setting")):
        read_setting(connection, str(name), "")


def load_clock(connection: apsw.Connection, clocks: Clocks, *, latest: int) -> StoreClock:
    """Return the store's clock, which goes on from the saved offset, and from stamp `latest` at least."""
    boot, offset = read_setting(connection, "boot", ""), read_setting(connection, "offset", "0")
    shift = read_setting(connection, "shift", "0")
    return StoreClock(clocks, latest=latest, boot=boot, offset=int(offset), shift=int(shift))


def save_clock(connection: apsw.Connection, clock: StoreClock) -> None:
    """Save the clock's offset, before anything is stamped with it."""
    next(write_settings(connection, boot=clock.boot, offset=str(clock.offset)))


def _compute_checksum(name: str, value: str) -> str:
    return hashlib.blake2b(f"{name} {value}".encode(), digest_size=8).hexdigest()
