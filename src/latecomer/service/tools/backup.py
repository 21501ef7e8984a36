"""Back a store up while its owner goes on: a copy of one moment of the file, verified before it gets its name."""

import os
from contextlib import suppress
from os import PathLike
from pathlib import Path

import apsw

from latecomer.errors import FileError, InputError
from latecomer.policies.persistence.file_format import sync
from latecomer.service.storage.private_files import SHARED, WAL, create_private, name_temporary
from latecomer.service.storage.schema import connect, make_read_error
from latecomer.service.tools.verify import verify


def backup(path: str | PathLike[str], target: str | PathLike[str]) -> list[str]:
    """Copy the store at `path` to `target`, which must not exist; return the lines of `verify` for the copy."""
    destination = Path(target)
    if os.path.lexists(destination):  # a link that leads nowhere is there too
        raise InputError(f"the copy needs a path of its own; {destination} is there already: choose another")
    part = name_temporary(destination)
    source = connect(path, write=False)
    try:
        os.close(create_private(part))  # fails here where nothing can be written
        _copy(source, part)
        report = list(verify(part, name=path))
        os.replace(part, destination)
        sync(destination.parent)
    except apsw.FullError as error:
        raise FileError(f"{destination} could not be written: {error}") from error
    except apsw.Error as error:
        raise make_read_error(path, error) from error
    except OSError as error:
        raise FileError(f"{destination} could not be written: {error.strerror or error}") from error
    finally:
        source.close()
        for suffix in ("", WAL, SHARED, "-journal"):
            with suppress(OSError):  # it was never made
                Path(f"{part}{suffix}").unlink()
    return report


def _copy(source: apsw.Connection, part: Path) -> None:
    """Copy all pages in one step: a reader's view of the write-ahead log does not change, and blocks no writer."""
    copy = apsw.Connection(os.fspath(part), flags=apsw.SQLITE_OPEN_READWRITE)
    with copy.backup("main", source, "main") as work:
        work.step(-1)
    copy.close()
    sync(part)
