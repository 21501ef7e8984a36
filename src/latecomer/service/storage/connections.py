"""The connections of a store's owner: one to write with, one to read with, and the files that they have opened."""

from contextlib import AbstractContextManager
from pathlib import Path

import apsw

from latecomer.errors import NoRoomError
from latecomer.service.storage.clock import StoreClock
from latecomer.service.storage.lock import StoreLock
from latecomer.service.storage.opened_files import OpenedFiles
from latecomer.service.storage.private_files import WAL
from latecomer.service.storage.rows import connect, connect_unchanging
from latecomer.service.storage.settings_table import remember_clock


class Connections:
    """Two connections; on a full disk one and the same, which cannot write.

    `failure` says why nothing can be written yet, where that is so.
    """

    def __init__(self, path: Path, owner: StoreLock) -> None:
        self._path, self._owner = path, owner
        self.failure: Exception | None = None
        try:
            self.writing, self.reading = connect(path, write=True), connect(path, write=False)
        except NoRoomError as error:
            self.writing = self.reading = connect_unchanging(path)
            self.failure = error
        self._opened = self._look()

    def _look(self) -> OpenedFiles:
        """Return the files whose loss must not go unnoticed: the store, its lock, and what is written ahead of it."""
        ahead = [] if self.writing is self.reading else [self._path.with_name(self._path.name + WAL)]
        return OpenedFiles(self._path, self._owner.path, *ahead)

    def check(self) -> None:
        """Raise `FileError` where the paths do not lead to the files that were opened."""
        self._opened.check()

    def keep_clock(self, clock: StoreClock) -> None:
        """Remember the time before anything is stamped with it; on a full disk that is a failure, to be mended."""
        if self.failure is None:
            try:
                remember_clock(self.writing, clock)
            except (apsw.FullError, apsw.IOError) as error:
                self.failure = error

    def reconnect(self, clock: StoreClock, lock: AbstractContextManager[object]) -> apsw.Connection:
        """Connect as an owner should, once there is room for it; in the writer's thread."""
        if self.writing is self.reading:
            writing, reading = connect(self._path, write=True), connect(self._path, write=False)
            with lock:
                self.reading.close()
                self.writing, self.reading = writing, reading
                self._opened = self._look()
        remember_clock(self.writing, clock)
        return self.writing

    def close(self) -> None:
        """Close both, and let the next owner have the files."""
        self.reading.close()
        self.writing.close()
        self._owner.release()
