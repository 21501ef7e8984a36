"""A copy of a log while its owner goes on: one moment of the file, whole, checked before it gets its name."""

import os
from contextlib import suppress
from os import PathLike
from pathlib import Path

import apsw

from latecomer.errors import FileError, InputError
from latecomer.policies.persistence.file_format import sync
from latecomer.service.storage.private_files import SHARED, WAL, create_private, name_temporary
from latecomer.service.storage.rows import connect, unreadable
from latecomer.service.tools.verify import verify


def backup(path: str | PathLike[str], target: str | PathLike[str]) -> list[str]:
    """Copy the log at `path` to `target`, which must not exist; what `verify` says of the copy."""
    destination = Path(target)
    if os.path.lexists(destination):  # a link that leads nowhere is there too
        raise InputError(f"the copy needs a path of its own; {destination} is there already: choose another")
    part = name_temporary(destination)
    source = connect(path, write=False)
    try:
        os.close(create_private(part))  # where nothing can be written, it is this that fails
        _copy(source, part)
        report = list(verify(part, name=path))
        os.replace(part, destination)
        sync(destination.parent)
    except apsw.FullError as error:
        raise FileError(f"{destination} could not be written: {error}") from error
    except apsw.Error as error:
        raise unreadable(path, error) from error
    except OSError as error:
        raise FileError(f"{destination} could not be written: {error.strerror or error}") from error
    finally:
        source.close()
        for suffix in ("", WAL, SHARED, "-journal"):
            with suppress(OSError):  # where it could not be made, it need not be removed
                Path(f"{part}{suffix}").unlink()
    return report


def _copy(source: apsw.Connection, part: Path) -> None:
    """All pages in one step: a reader's view of a WAL does not change under it, and holds no writer up."""
    copy = apsw.Connection(os.fspath(part), flags=apsw.SQLITE_OPEN_READWRITE)
    with copy.backup("main", source, "main") as work:
        work.step(-1)
    copy.close()
    sync(part)
