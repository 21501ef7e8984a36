"""Back a store up while its owner goes on: a copy of one moment of the file, verified before it gets its name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

import apsw

from latecomer.atomic_write import replace_file
from latecomer.errors import FileError, InputError
from latecomer.service.storage.private_files import SHARED, WAL
from latecomer.service.storage.schema import connect, make_read_error
from latecomer.service.tools.verify import verify


def backup(path: str | PathLike[str], target: str | PathLike[str]) -> list[str]:
    """Copy the store at `path` to `target`, which must not exist; return the lines of `verify` for the copy."""
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
        raise make_read_error(path, error) from error
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
    """Copy all pages in one step: a reader's view of the write-ahead log does not change, and blocks no writer."""
    copy = apsw.Connection(os.fspath(part), flags=apsw.SQLITE_OPEN_READWRITE)
    with copy.backup("main", source, "main") as work:
        work.step(-1)
    copy.close()
