"""The connections of a store's owner: one that writes, one that reads, and the identity of their files."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apsw

from latecomer.errors import NoRoomError
from latecomer.service.storage.clock import StoreClock
from latecomer.service.storage.lock import StoreLock
from latecomer.service.storage.opened_files import OpenedFiles
from latecomer.service.storage.private_files import WAL
from latecomer.service.storage.schema import connect, connect_immutable, make_read_error
from latecomer.service.storage.settings_table import save_clock


class Connections:
    """Two connections; on a full disk they are one, which cannot write, and `failure` says why."""

    def __init__(self, path: Path, store_lock: StoreLock) -> None:
        self._path, self._store_lock = path, store_lock
        self.failure: Exception | None = None
        try:
            self.writing, self.reading = connect(path, write=True), connect(path, write=False)
        except NoRoomError as error:
            self.writing = self.reading = connect_immutable(path)
            self.failure = error
        self._opened = self._list_files()

    def _list_files(self) -> OpenedFiles:
        """Return the files whose loss must be noticed: the store, its lock file, and the write-ahead log."""
        ahead = [] if self.writing is self.reading else [self._path.with_name(self._path.name + WAL)]
        return OpenedFiles(self._path, self._store_lock.path, *ahead)

    def check(self) -> None:
        """Raise `FileError` where the paths do not lead to the files that were opened."""
        self._opened.check()

    def measure_free(self) -> int | None:
        """Return the bytes that are free on the store's disk; None where that cannot be known."""
        try:
            return shutil.disk_usage(self._path.parent).free
        except OSError:
            return None

    def save_clock_or_fail(self, clock: StoreClock) -> None:
        """Save the clock before anything is stamped with it; on a full disk set `failure` instead."""
        if self.failure is None:
            try:
                save_clock(self.writing, clock)
            except (apsw.FullError, apsw.IOError) as error:
                self.failure = error

    def reconnect(self, clock: StoreClock, lock: AbstractContextManager[object]) -> apsw.Connection:
        """Connect for writing once there is room on the disk; called in the writer's thread."""
        if self.writing is self.reading:
            writing, reading = connect(self._path, write=True), connect(self._path, write=False)
            with lock:
                self.reading.close()
                self.writing, self.reading = writing, reading
                self._opened = self._list_files()
        save_clock(self.writing, clock)
        return self.writing

    @contextmanager
    def open_view(self) -> Iterator[apsw.Connection]:
        """Open one more connection that reads, with one view of the file, for a thread of its own."""
        connection = (
            connect(self._path, write=False) if self.writing is not self.reading else connect_immutable(self._path)
        )
        try:
            connection.execute("BEGIN")
            yield connection
        except apsw.Error as error:
            raise make_read_error(self._path, error) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connections and release the store's lock."""
        self.reading.close()
        self.writing.close()
        self._store_lock.release()
