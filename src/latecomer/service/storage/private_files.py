"""Private files: mode 0600 whatever the umask, and never written through a symbolic link."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600
WAL, SHARED = "-wal", "-shm"
"""Endings of the files that SQLite keeps beside a store; they get the store's own mode."""


def create_private(path: Path) -> int:
    """Create a file, and return its descriptor; `FileExistsError` where something is there, were it a broken link."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE)
    with suppress(OSError):  # a file system without modes
        os.fchmod(descriptor, PRIVATE)
    return descriptor


def name_temporary(path: Path) -> Path:
    """Return a path beside `path` that nobody can guess, so that nobody can have made a link there."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


def is_open_to_others(path: Path) -> bool:
    """Tell whether anybody but the file's owner may read or write it."""
    return path.exists() and bool(path.stat().st_mode & 0o077)
