"""Creation of a store's file: once, and not again by itself where it has been lost."""

from pathlib import Path

from latecomer.atomic_write import replace_file
from latecomer.errors import DamagedFileError, FileError
from latecomer.service.storage.lock import StoreLock, was_created
from latecomer.service.storage.private_files import SHARED, WAL
from latecomer.service.storage.schema import check_is_store, create_tables


def check_not_lost(path: Path) -> None:
    """Raise `FileError` where the store is missing or empty, and a file beside it shows that there was one."""
    if path.exists() and path.stat().st_size:
        return
    ahead = path.with_name(path.name + WAL)
    traces = [StoreLock.path_of(path)] if was_created(path) else []
    traces += [ahead] if ahead.exists() and ahead.stat().st_size else []
    if traces:
        kind, what = (DamagedFileError, "empty") if path.exists() else (FileError, "missing")
        raise kind(
            f"{path} is {what}, and was a log before: restore it from a copy; or, to begin an empty one, say so once "
            f"with --create (LATECOMER_CREATE=true, create=True in Python), or remove {' and '.join(map(str, traces))}"
        )


def check_path(path: Path) -> None:
    """Raise `FileError` where a store cannot be at this path: there is no folder, or a file of another kind."""
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent}: make it, or check the path")
    if path.is_file():
        check_is_store(path)


def lock_path(path: Path) -> StoreLock:
    """Take the lock of a store that is at this path, or may be made there."""
    check_path(path)
    return StoreLock(path)


def create_if_missing(path: Path, *, create: bool) -> None:
    """Create an empty store where there is none; where one has been lost, only if `create` is true.

    A process that is killed meanwhile leaves no half of a store, which nobody could open.
    """
    if path.exists() and path.stat().st_size:
        return
    if create:
        for suffix in (WAL, SHARED):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    else:
        check_not_lost(path)
    with replace_file(path, private=True) as part:  # SQLite gives its companion files the same mode
        create_tables(part)
