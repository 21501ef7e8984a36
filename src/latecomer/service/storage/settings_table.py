"""The file of a store: made once, and what it remembers besides the log."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import apsw

from latecomer.errors import DamagedFileError, FileError
from latecomer.service.storage.clock import Clocks, StoreClock
from latecomer.service.storage.lock import StoreLock, was_made
from latecomer.service.storage.private_files import SHARED, WAL
from latecomer.service.storage.rows import make

_KEPT = "7d"
"""How long a file keeps decisions that was never told."""
_YES, _NO = "yes", "no"


def refuse_new(path: Path) -> None:
    """`FileError` where a log would be made though there was one before, as something beside it tells."""
    if path.exists() and path.stat().st_size:
        return
    ahead = path.with_name(path.name + WAL)
    traces = [StoreLock.path_of(path)] if was_made(path) else []
    traces += [ahead] if ahead.exists() and ahead.stat().st_size else []
    if traces:
        kind, what = (DamagedFileError, "empty") if path.exists() else (FileError, "missing")
        raise kind(
            f"{path} is {what}, and was a log before: restore it from a copy; or, to begin an empty one, say so once "
            f"with --create (LATECOMER_CREATE=true, create=True in Python), or remove {' and '.join(map(str, traces))}"
        )


def make_once(path: Path, *, create: bool) -> None:
    """Make a log where there is none; where there was one before, only if `create` says so."""
    if path.exists() and path.stat().st_size:
        return
    if create:
        for suffix in (WAL, SHARED):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    else:
        refuse_new(path)
    make(path)


def clock_of(connection: apsw.Connection, machine: Clocks, latest: int) -> StoreClock:
    """Time as the file knows it."""
    boot, offset = _recalled(connection, "boot", ""), _recalled(connection, "offset", "0")
    shift = _recalled(connection, "shift", "0")
    return StoreClock(machine, latest=latest, boot=boot, offset=int(offset), shift=int(shift))


def remember_clock(connection: apsw.Connection, clock: StoreClock) -> None:
    """Renew what the file knows of the time, before anything is stamped with it."""
    next(remembering(connection, boot=clock.boot, offset=str(clock.offset)))


def recalled_retention(connection: apsw.Connection) -> str:
    """How long decisions stay in the log after their window, as the file was told last."""
    return _recalled(connection, "retention", _KEPT)


def recall_keys(connection: apsw.Connection) -> bool:
    """Tell whether the store has been served with keys."""
    return _recalled(connection, "keys", _NO) == _YES


def remember_keys(connection: apsw.Connection, expected: bool) -> Iterator[None]:
    """Remember whether keys are needed from now on."""
    return remembering(connection, keys=_YES if expected else _NO)


def check_seals(connection: apsw.Connection) -> None:
    """`DamagedFileError` where what the file remembers is not what it was told."""
    for (name,) in list(connection.execute("SELECT name FROM setting")):
        _recalled(connection, str(name), "")


def _recalled(connection: apsw.Connection, name: str, otherwise: str) -> str:
    found = list(connection.execute("SELECT value FROM setting WHERE name = ?", (name,)))
    if not found:
        return otherwise
    value, _, seal = str(found[0][0]).rpartition(" ")
    if seal != _seal(name, value):
        raise DamagedFileError(f"what the log knows of its {name} is damaged: {found[0][0]!r}; restore it from a copy")
    return value


def remembering(connection: apsw.Connection, **settings: str) -> Iterator[None]:
    """Remember these, in one step."""
    with connection:
        for name, value in settings.items():
            sealed = f"{value} {_seal(name, value)}"
            connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, sealed))
    yield


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
