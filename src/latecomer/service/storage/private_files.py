"""Private files: mode 0600 whatever the umask, and never written through a symbolic link."""

from pathlib import Path

from latecomer.atomic_write import create_file

WAL, SHARED = "-wal", "-shm"
"""Endings of the files that SQLite keeps beside a store; they get the store's own mode."""


def create_private(path: Path) -> int:
    """Create a file that must not be there, not even as a link that leads nowhere; return its descriptor."""
    return create_file(path, private=True)


def is_open_to_others(path: Path) -> bool:
    """Tell whether anybody but the file's owner may read or write it."""
    return path.exists() and bool(path.stat().st_mode & 0o077)
