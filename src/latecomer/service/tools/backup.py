"""A copy of a log while its owner goes on: one moment of the file, whole, checked before it gets its name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

import apsw

from latecomer.atomic_write import replace_file
from latecomer.errors import FileError, InputError
from latecomer.service.storage.private_files import SHARED, WAL
from latecomer.service.storage.rows import connect, unreadable
from latecomer.service.tools.verify import verify


def backup(path: str | PathLike[str], target: str | PathLike[str]) -> list[str]:
    """Copy the log at `path` to `target`, which must not exist; what `verify` says of the copy."""
    destination = Path(target)
    if os.path.lexists(destination):  # a link that leads nowhere is there too
        raise InputError(f"the copy needs a path of its own; {destination} is there already: choose another")
    source = connect(path, write=False)
    try:
        with replace_file(destination, private=True) as part, _without_sidecars(part):
            _copy(source, part)
            report = list(verify(part, name=path))
    except apsw.FullError as error:
        raise FileError(f"{destination} could not be written: {error}") from error
    except apsw.Error as error:
        raise unreadable(path, error) from error
    except OSError as error:
        raise FileError(f"{destination} could not be written: {error.strerror or error}") from error
    finally:
        source.close()
    return report


@contextmanager
def _without_sidecars(part: Path) -> Iterator[None]:
    """Remove the files that SQLite puts beside the copy."""
    try:
        yield
    finally:
        for suffix in (WAL, SHARED, "-journal"):
            with suppress(OSError):  # most of them are gone already
                Path(f"{part}{suffix}").unlink()


def _copy(source: apsw.Connection, part: Path) -> None:
    """All pages in one step: a reader's view of a WAL does not change under it, and holds no writer up."""
    copy = apsw.Connection(os.fspath(part), flags=apsw.SQLITE_OPEN_READWRITE)
    with copy.backup("main", source, "main") as work:
        work.step(-1)
    copy.close()
