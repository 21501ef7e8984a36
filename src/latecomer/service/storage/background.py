"""Background jobs of the writer's thread: work in small steps between commits, each step a transaction."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import apsw

from latecomer.errors import FileError

Steps = Iterator[None]
"""A job that has begun; each `next` takes a step."""
_IDLE_FACTOR = 9.0
"""The pause after a step of a deferrable job, in the step's own duration: such jobs get a tenth of the time."""


class Job(NamedTuple):
    """A job to begin: how, what it is about (its kind and the bandit's number), and when.

    A `deferrable` job runs when there is nothing else to do; an `abortable` one is given up when the store closes.
    """

    begin: Callable[[apsw.Connection], Steps]
    about: tuple[str, int]
    deferrable: bool = False
    abortable: bool = False


class BackgroundJobs:
    """The queue of begun jobs; deferrable ones come after all others.

    A job that fails is dropped, since the log has everything that is needed to do it again. Why it failed is kept until
    a job about the same succeeds.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._due: deque[tuple[tuple[str, int], Steps]] = deque()
        self._deferrable: deque[tuple[tuple[str, int], Steps]] = deque()
        self._abortable: set[tuple[str, int]] = set()
        self._failures: dict[tuple[str, int], str] = {}
        self._next_deferrable = 0.0
        """The time from which on the next step of a deferrable job may be taken."""

    @property
    def failure(self) -> str | None:
        """The reason why a job failed: of the first that did, and has not succeeded since."""
        return next(iter(list(self._failures.values())), None)  # a copy, since the writer's thread goes on

    def forget_failures(self, bandit: int) -> None:
        """Drop the failures about a bandit that is deleted."""
        for about in [about for about in list(self._failures) if about[1] == bandit]:
            self._failures.pop(about, None)

    def compute_pause(self) -> float | None:
        """Return the seconds until the next step may be taken; None where there is none to take."""
        if self._due:
            return 0.0
        return max(0.0, self._next_deferrable - time.perf_counter()) if self._deferrable else None

    def add(self, job: Job) -> None:
        """Begin a job."""
        steps = job.begin(self._connection)
        (self._deferrable if job.deferrable else self._due).append((job.about, steps))
        if job.abortable:
            self._abortable.add(job.about)

    def finish(self) -> None:
        """Complete every job that is neither deferrable nor abortable."""
        while self._due:
            if self._due[0][0] in self._abortable:
                self._due.popleft()
            else:
                self.advance()

    def advance(self) -> None:
        """Take one step of the first job that is not deferrable."""
        if self._due:
            self._step(self._due)

    def advance_any(self) -> None:
        """Take one step, of a deferrable job where there is no other."""
        if self._due or not self._deferrable:
            self.advance()
            return
        began = time.perf_counter()
        self._step(self._deferrable)
        now = time.perf_counter()
        self._next_deferrable = now + _IDLE_FACTOR * (now - began)

    def _step(self, queue: deque[tuple[tuple[str, int], Steps]]) -> None:
        about, steps = queue[0]
        try:
            next(steps)
        except StopIteration:
            queue.popleft()
            self._failures.pop(about, None)
        except (apsw.Error, FileError, OSError, ValueError, OverflowError, MemoryError) as error:
            roll_back(self._connection)
            queue.popleft()
            self._failures[about] = f"{type(error).__name__}: {error}"


def roll_back(connection: apsw.Connection) -> None:
    """Roll back the transaction that a failure has left open, if any."""
    if not connection.get_autocommit():
        connection.execute("ROLLBACK")
