"""The alarms of a store that may be in use, as of each bandit's latest event."""

import shutil
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.bandit.alarms import list_alarms
from latecomer.service.messages import Alarm, Health
from latecomer.service.storage.postgres.address import is_address
from latecomer.service.storage.postgres.no_index import open_no_index
from latecomer.service.storage.recovery import make_index_opener, read_descriptors, recover_bandit
from latecomer.service.store_alarms import list_store_alarms
from latecomer.service.tools.reader import find_descriptor, open_reader


def check_store(path: str | PathLike[str], names: Sequence[str] = ()) -> list[Alarm]:
    """List the alarms of these bandits, or of all, and of the store as far as it is known from outside.

    Only its server knows whether it can write, whether snapshots fail, and whether its clock is right.
    """
    found: list[Alarm] = []
    damage: dict[str, str] = {}
    with open_reader(path) as connection:
        open_index = make_index_opener(connection) if isinstance(connection, apsw.Connection) else open_no_index
        chosen = [find_descriptor(connection, name) for name in names]
        for descriptor in chosen or read_descriptors(connection, {})[0].values():
            if descriptor.is_unfinished:
                continue
            try:
                bandit = recover_bandit(connection, descriptor, open_index=open_index).bandit
            except DamagedFileError as error:
                damage[descriptor.name] = str(error)
                continue
            found += list_alarms(bandit, now=bandit.stamp)
    return found + list_store_alarms(_describe(path, damage))


def _describe(path: str | PathLike[str], damage: dict[str, str]) -> Health:
    return Health(
        failure=None,
        snapshot_failure=None,
        commits=0,
        events=0,
        bytes=0,
        commit_seconds=0.0,
        clock_offset=0.0,
        quarantined=damage,
        free_bytes=None if is_address(path) else shutil.disk_usage(Path(path).resolve().parent).free,
    )
