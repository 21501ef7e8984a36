"""One owner at a time: a lock on a file beside the log, which the system itself releases when its holder ends."""

import errno
import fcntl
import os
import stat
from pathlib import Path

from latecomer.errors import FileError, StoreLockedError
from latecomer.service.storage.private_files import create_private

_PID = 32
_MADE = b"\nthe log was made\n"


class StoreLock:
    """The right to write to a log, from its making until `release`.

    Raises `StoreLockedError`, which names the owner's process, where somebody else has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = self.path_of(path)
        self._file = _open(self.path)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(self._file, _PID, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StoreLockedError(
                f"{path} is owned by process {pid}: a log has one owner at a time; stop that one, or ask it over HTTP"
            ) from None
        self._note(f"{os.getpid()}".encode().ljust(_PID), 0)

    def note_made(self) -> None:
        """Remember that there is a log: should it be missing once, no empty one takes its place unasked."""
        if not _says_made(self._file):
            self._note(_MADE, _PID)
            os.fsync(self._file)

    @staticmethod
    def path_of(store: Path) -> Path:
        """Return where the lock of a store is."""
        return store.with_name(f"{store.name}.owner")

    def release(self) -> None:
        """Let the next one have it. The file stays: removing it could part two owners."""
        self._note(b" " * _PID, 0)
        os.close(self._file)

    def _note(self, text: bytes, at: int) -> None:
        """Write it down; on a full disk it is left, for the lock alone says who owns the log."""
        try:
            os.pwrite(self._file, text, at)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def was_made(store: Path) -> bool:
    """Tell whether there was a log at this path before."""
    try:
        file = os.open(StoreLock.path_of(store), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return _says_made(file)
    except OSError:  # no regular file: the next one to own it will say so
        return False
    finally:
        os.close(file)


def _says_made(file: int) -> bool:
    return os.pread(file, len(_MADE), _PID) == _MADE


def _open(path: Path) -> int:
    """Open the file, made if need be; a link is refused, for it would be written through."""
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
