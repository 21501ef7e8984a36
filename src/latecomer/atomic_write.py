"""Atomic writes: a file is complete and on disk before it takes the place of an older one, or it does not appear."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PRIVATE, _SHARED = 0o600, 0o666


@contextmanager
def replace_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a path beside `path` to write to; what is there at the end replaces `path`, unless an error was raised.

    Parameters
    ----------
    path
        The file to write. A symbolic link there is replaced, not followed.
    private
        Give the file mode 0600, whatever the umask.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")  # nobody can have planted a link at it
    try:
        os.close(create_file(temporary, private=private))
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
    finally:
        with suppress(OSError):  # where it could not be made, it need not be removed
            temporary.unlink()
    sync(path.parent)


def create_file(path: Path, *, private: bool) -> int:
    """Create a file that must not exist, not even as a link that leads nowhere; return its descriptor.

    With `private` its mode is 0600, whatever the umask.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, _PRIVATE if private else _SHARED)
    if private:
        with suppress(OSError):  # a file system without modes
            os.fchmod(descriptor, _PRIVATE)
    return descriptor


def sync(path: Path) -> None:
    """Make the contents of a file durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
