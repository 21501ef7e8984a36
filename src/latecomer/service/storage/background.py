"""What the writer does besides commits: work in small steps, each a transaction of its own."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import apsw

from latecomer.errors import FileError

Chore = Iterator[None]
"""Work that has begun."""
_SHARE = 9.0
"""How much longer a pause is than the step before it."""


class Job(NamedTuple):
    """A chore to begin: what it is and whose, and when.

    One that `can_wait` is done when there is nothing else to do; one that `can_stop` is given up when the store closes.
    """

    begin: Callable[[apsw.Connection], Chore]
    about: tuple[str, int]
    can_wait: bool = False
    can_stop: bool = False


class BackgroundJobs:
    """Those that have begun, one after the other; those that can wait after all others.

    Chores that can wait have a tenth of the time at most: commits come first. A chore that fails is dropped: the log is
    the truth, and it is whole. Why it failed is remembered until one about the same succeeds.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._due: deque[tuple[tuple[str, int], Chore]] = deque()
        self._can_wait: deque[tuple[tuple[str, int], Chore]] = deque()
        self._can_stop: set[tuple[str, int]] = set()
        self._failures: dict[tuple[str, int], str] = {}
        self._next = 0.0
        """When the next step of one that can wait may be taken."""

    @property
    def failure(self) -> str | None:
        """Why one failed, the first that did."""
        return next(iter(list(self._failures.values())), None)  # a copy, for the writer goes on

    def forget(self, bandit: int) -> None:
        """Whatever failed of a bandit does not matter any more."""
        for about in [about for about in list(self._failures) if about[1] == bandit]:
            self._failures.pop(about, None)

    def pause(self) -> float | None:
        """Seconds until the next step may be taken; None where there is none to take."""
        if self._due:
            return 0.0
        return max(0.0, self._next - time.perf_counter()) if self._can_wait else None

    def add(self, work: Job) -> None:
        """Begin one."""
        chore = work.begin(self._connection)
        (self._can_wait if work.can_wait else self._due).append((work.about, chore))
        if work.can_stop:
            self._can_stop.add(work.about)

    def finish(self) -> None:
        """Do all those that can neither wait nor stop."""
        while self._due:
            if self._due[0][0] in self._can_stop:
                self._due.popleft()
            else:
                self.advance()

    def advance(self) -> None:
        """One step of the first that cannot wait."""
        if self._due:
            self._step(self._due)

    def advance_any(self) -> None:
        """One step, also of one that can wait, where there is no other."""
        if self._due or not self._can_wait:
            self.advance()
            return
        began = time.perf_counter()
        self._step(self._can_wait)
        now = time.perf_counter()
        self._next = now + _SHARE * (now - began)

    def _step(self, line: deque[tuple[tuple[str, int], Chore]]) -> None:
        about, chore = line[0]
        try:
            next(chore)
        except StopIteration:
            line.popleft()
            self._failures.pop(about, None)
        except (apsw.Error, FileError, OSError, ValueError, OverflowError, MemoryError) as error:
            roll_back(self._connection)
            line.popleft()
            self._failures[about] = f"{type(error).__name__}: {error}"


def roll_back(connection: apsw.Connection) -> None:
    """Take back what a failure has left half done."""
    if not connection.get_autocommit():
        connection.execute("ROLLBACK")
