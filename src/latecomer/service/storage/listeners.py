"""Callbacks of the writer's thread. An exception in a callback is logged and stops nothing."""

import logging
from collections.abc import Callable

OnCommit = Callable[[int, int, float], None]
"""Called with the events, bytes and seconds of a commit."""
OnTrouble = Callable[[str | None], None]
"""Called with the reason when commits begin to fail, and with None when they succeed again."""
OnDeath = Callable[[], object]
"""Called when the writer's thread has ended by itself: nothing more can be written."""
_log = logging.getLogger(__name__)


class Listeners:
    """The callbacks for each commit, for failures that begin or end, and for the end of the thread."""

    def __init__(self) -> None:
        self.on_commit: OnCommit | None = None
        self.on_trouble: OnTrouble | None = None
        self.on_death: OnDeath | None = None
        self._failed: set[str] = set()

    def report_commit(self, events: int, size: int, seconds: float) -> None:
        """Report a commit."""
        if self.on_commit is not None:
            try:
                self.on_commit(events, size, seconds)
            except Exception as error:  # noqa: BLE001 - whatever it was
                self._log_failure("on_commit", error)

    def report_trouble(self, failure: str | None) -> None:
        """Report why commits fail, or None when they succeed again."""
        if self.on_trouble is not None:
            try:
                self.on_trouble(failure)
            except Exception as error:  # noqa: BLE001
                self._log_failure("on_trouble", error)

    def report_death(self) -> None:
        """Report that the thread ends."""
        if self.on_death is not None:
            try:
                self.on_death()
            except Exception as error:  # noqa: BLE001
                self._log_failure("on_death", error)

    def _log_failure(self, name: str, error: Exception) -> None:
        """Log an exception of a callback, only the first: commits come a thousand times a second."""
        if name not in self._failed:
            self._failed.add(name)
            _log.error("a callback of the writer failed: %s", name, exc_info=error)
