"""The queue between the store and the writer's thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from latecomer.service.storage.background import Job
from latecomer.service.storage.pending_commit import Commit

Work = Commit | Job | None
"""None ends the thread."""


class WorkQueue:
    """Work for one thread, in the order in which it is put; only `get` may be called without the store's lock."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Work] = SimpleQueue()
        self._held: list[Work] | None = None
        """Work that was put within `hold`; None outside of it."""
        self.get = self._queue.get

    def put(self, work: Work) -> None:
        """Add work, and wake the thread."""
        if self._held is None:
            self._queue.put(work)
        else:
            self._held.append(work)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wake the thread at the end only: in between it would ask for Python's lock again and again, in vain."""
        held: list[Work] = []
        self._held = held
        try:
            yield
        finally:
            self._held = None
            for work in held:
                self._queue.put(work)
