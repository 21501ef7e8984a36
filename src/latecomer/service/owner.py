"""One owner at a time: a lock on a file beside the log, which the system itself releases when its holder ends."""

import errno
import fcntl
import os
from pathlib import Path

from latecomer.errors import FileError, OwnedError

_PID = 32
_MADE = b"\nthe log was made\n"


class Owner:
    """The right to write to a log, from its making until `release`.

    Raises `OwnedError`, which names the owner's process, where somebody else has it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.owner")
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FileError(
                f"{self._path} cannot be made: {error.strerror}; give a folder that can be written"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(self._file, _PID, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise OwnedError(
                f"{path} is owned by process {pid}: a log has one owner at a time; stop that one, or ask it over HTTP"
            ) from None
        self._note(f"{os.getpid()}".encode().ljust(_PID), 0)

    @property
    def has_made(self) -> bool:
        """Whether the log was made before: an empty file is then no new one."""
        return os.pread(self._file, len(_MADE), _PID) == _MADE

    def note_made(self) -> None:
        """Remember it."""
        self._note(_MADE, _PID)
        os.fsync(self._file)

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
