"""The file of a desk: made once, and what it knows of time."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.clock import DeskClock, Machine
from latecomer.service.log import make
from latecomer.service.owner import Owner


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
    settings: dict[str, Any] = dict(connection.execute("SELECT name, value FROM setting"))
    try:
        offset = int(settings.get("offset", 0))
    except ValueError:
        raise DamagedFileError(f"the log's offset of time is damaged: {settings['offset']!r}") from None
    clock = DeskClock(machine, latest=latest, boot=settings.get("boot", ""), offset=offset)
    with connection:
        for name, value in (("boot", clock.boot), ("offset", str(clock.offset))):
            connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))
    return clock


class Closing(ABC):
    """What a `with` statement closes."""

    @abstractmethod
    def close(self) -> None:
        """Let the file go."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
