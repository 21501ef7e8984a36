"""Those who are told by the writer's thread. What a listener raises is logged, and stops nothing."""

import logging
from collections.abc import Callable

OnCommit = Callable[[int, int, float], None]
"""Its events, bytes and seconds."""
OnTrouble = Callable[[str | None], None]
"""Why commits fail, or None once they do no longer."""
OnDeath = Callable[[], object]
"""The writer's thread has ended by itself: nothing more can be written."""
_log = logging.getLogger(__name__)


class Listeners:
    """Told of each commit, of trouble that begins or ends, and of the end of the thread."""

    def __init__(self) -> None:
        self.on_commit: OnCommit | None = None
        self.on_trouble: OnTrouble | None = None
        self.on_death: OnDeath | None = None
        self._failed: set[str] = set()

    def commit(self, events: int, size: int, seconds: float) -> None:
        """Tell of a commit."""
        if self.on_commit is not None:
            try:
                self.on_commit(events, size, seconds)
            except Exception as error:  # noqa: BLE001 - whatever it was
                self._report("on_commit", error)

    def trouble(self, failure: str | None) -> None:
        """Tell that commits fail, and why; or that they do no longer."""
        if self.on_trouble is not None:
            try:
                self.on_trouble(failure)
            except Exception as error:  # noqa: BLE001
                self._report("on_trouble", error)

    def death(self) -> None:
        """Tell that the thread ends."""
        if self.on_death is not None:
            try:
                self.on_death()
            except Exception as error:  # noqa: BLE001
                self._report("on_death", error)

    def _report(self, name: str, error: Exception) -> None:
        """Log what a listener raised, the first time: a listener to commits is called a thousand times a second."""
        if name not in self._failed:
            self._failed.add(name)
            _log.error("a listener of the writer failed: %s", name, exc_info=error)
