"""Settings that the store's file remembers: retention, whether keys are needed, and its clock."""

import apsw

from latecomer.service.durations import FOREVER, retention_of
from latecomer.service.registry import Registry
from latecomer.service.storage.background import Job
from latecomer.service.storage.connections import Connections
from latecomer.service.storage.rows import STORE
from latecomer.service.storage.settings_table import recall_keys, remember_keys, remembering


class Remembered(Registry):
    """The bandits of one file, and its settings."""

    _connections: Connections

    @property
    def reader(self) -> apsw.Connection:
        """The connection to read with, with the lock held."""
        return self._connections.reading

    @property
    def retention(self) -> str:
        """The time that decisions stay in the log after their window."""
        keep = self._maintenance.retention
        return FOREVER if keep is None else f"{keep // 1_000_000}s"

    def keep(self, retention: str) -> None:
        """Keep decisions so long after their window, from now on ("7d", "forever"); the file remembers."""
        retention_of(retention)
        with self._lock:
            self._check_open()
            self._keep(retention)

    def _keep(self, retention: str) -> None:
        with self._lock:
            self._maintenance.retention = retention_of(retention)
            self._writer.cut(Job(lambda connection: remembering(connection, retention=retention), ("retention", STORE)))

    def adjust_clock(self) -> float:
        """Take the machine's clock for right from now on; return by how many seconds the store's time was ahead of it.

        The store's time goes on as it was, so that windows stay what they are; what is said of the calendar changes.
        """
        with self._lock:
            self._check_open()
            ahead = self._clock.adjust()
            for bandit in self._bandits.values():
                bandit.shift = self._clock.shift
            shift = str(self._clock.shift)
            self._writer.cut(Job(lambda connection: remembering(connection, shift=shift), ("clock", STORE)))
        return ahead

    def recall_keys(self) -> bool:
        """Tell whether this store has been served with keys."""
        with self._lock:
            return recall_keys(self.reader)

    def remember_keys(self, expected: bool) -> None:
        """Remember, in the file, whether keys are needed from now on."""
        with self._lock:
            self._check_open()
            self._writer.cut(Job(lambda connection: remember_keys(connection, expected), ("keys", STORE)))
