"""The lock of a store: a file beside it, locked by the one process that may write, until that process ends."""

import errno
import fcntl
import os
import stat
from pathlib import Path

from latecomer.errors import FileError, StoreLockedError
from latecomer.service.storage.private_files import create_private

_PID_SIZE = 32
_CREATED = b"\nthe store was created\n"


class StoreLock:
    """The exclusive right to write to a store, until `release`.

    Raises `StoreLockedError`, which names the owner's process, where another process has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = self.path_of(path)
        self._file = _open(self.path)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(self._file, _PID_SIZE, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StoreLockedError(
                f"{path} is owned by process {pid}: a log has one owner at a time; stop that one, or use it over HTTP"
            ) from None
        self._owner = os.getpid()
        self._write(f"{self._owner}".encode().ljust(_PID_SIZE), 0)

    def mark_created(self) -> None:
        """Note that the store was created: should it be lost, no empty one is created in its place by itself."""
        if not _has_mark(self._file):
            self._write(_CREATED, _PID_SIZE)
            os.fsync(self._file)

    @staticmethod
    def path_of(store: Path) -> Path:
        """Return the path of a store's lock file."""
        return store.with_name(f"{store.name}.lock")

    def release(self) -> None:
        """Release the lock. The file stays: with two files, two processes could both hold a lock.

        A process that was forked meanwhile has the open file too. Closing it here would leave the lock to that one, and
        a release there must not take it from its owner.
        """
        if os.getpid() == self._owner:
            self._write(b" " * _PID_SIZE, 0)
            fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)

    def _write(self, text: bytes, at: int) -> None:
        """Write into the lock file; a full disk is ignored, since the lock itself needs no contents."""
        try:
            os.pwrite(self._file, text, at)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def was_created(store: Path) -> bool:
    """Tell whether a store was created at this path before."""
    try:
        file = os.open(StoreLock.path_of(store), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return _has_mark(file)
    except OSError:  # no regular file: whoever takes the lock gets the error
        return False
    finally:
        os.close(file)


def _has_mark(file: int) -> bool:
    return os.pread(file, len(_CREATED), _PID_SIZE) == _CREATED


def _open(path: Path) -> int:
    """Open the lock file, created if need be; a symbolic link is refused, since its target would be written to."""
    try:
        try:
            return create_private(path)
        except FileExistsError:
            found = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileError(f"{path} is a symbolic link, and is not followed: remove it") from None
        raise FileError(f"{path} cannot be made: {error.strerror}; give a folder that can be written") from None
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise FileError(f"{path} is no regular file: remove it")
    return found
