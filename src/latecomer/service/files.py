"""The file of a desk: made once, and what it remembers besides the log."""

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.clock import DeskClock, Machine
from latecomer.service.log import make
from latecomer.service.owner import Owner
from latecomer.service.spans import retention_of

_KEPT = "7d"
"""How long a file keeps decisions that was never told."""


def made_once(path: Path, owner: Owner) -> None:
    """A log is made where there is none; one that has become empty is not taken for a new one."""
    if path.exists() and path.stat().st_size:
        owner.note_made()
        return
    if path.exists() and owner.has_made:
        raise DamagedFileError(
            f"{path} is empty, and was a log before: restore it from a copy, or remove it to begin anew"
        )
    make(path)
    owner.note_made()


def clock_of(connection: apsw.Connection, machine: Machine, latest: int) -> DeskClock:
    """Time as the file knows it, and the file's knowledge renewed."""
    boot, offset = _recalled(connection, "boot", ""), _recalled(connection, "offset", "0")
    clock = DeskClock(machine, latest=latest, boot=boot, offset=int(offset))
    _remember(connection, boot=clock.boot, offset=str(clock.offset))
    return clock


def kept(connection: apsw.Connection, told: str | None) -> int | None:
    """Microseconds that decisions stay after their window, None for ever: as told now, or else as told last."""
    keep = retention_of(told or _recalled(connection, "retention", _KEPT))
    if told is not None:
        _remember(connection, retention=told)
    return keep


def _recalled(connection: apsw.Connection, name: str, otherwise: str) -> str:
    found = list(connection.execute("SELECT value FROM setting WHERE name = ?", (name,)))
    if not found:
        return otherwise
    value, _, seal = str(found[0][0]).rpartition(" ")
    if seal != _seal(name, value):
        raise DamagedFileError(f"what the log knows of its {name} is damaged: {found[0][0]!r}; restore it from a copy")
    return value


def _remember(connection: apsw.Connection, **settings: str) -> None:
    with connection:
        for name, value in settings.items():
            sealed = f"{value} {_seal(name, value)}"
            connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, sealed))


def _seal(name: str, value: str) -> str:
    return hashlib.blake2b(f"{name} {value}".encode(), digest_size=8).hexdigest()


class Closing(ABC):
    """What a `with` statement closes."""

    @abstractmethod
    def close(self) -> None:
        """Let the file go."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
