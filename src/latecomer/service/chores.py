"""What the writer does besides commits: work in small steps, each a transaction of its own."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import apsw

from latecomer.errors import FileError

Chore = Iterator[None]
"""Work that has begun."""


class Work(NamedTuple):
    """A chore to begin: what it is and whose, and whether it can wait until there is nothing else to do."""

    begin: Callable[[apsw.Connection], Chore]
    about: tuple[str, int]
    can_wait: bool = False


class Chores:
    """Those that have begun, one after the other; those that can wait after all others.

    A chore that fails is dropped: the log is the truth, and it is whole. Why it failed is remembered until one about
    the same succeeds.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._due: deque[tuple[tuple[str, int], Chore]] = deque()
        self._can_wait: deque[tuple[tuple[str, int], Chore]] = deque()
        self._failures: dict[tuple[str, int], str] = {}

    @property
    def failure(self) -> str | None:
        """Why one failed, the first that did."""
        return next(iter(list(self._failures.values())), None)  # a copy, for the writer goes on

    def forget(self, bandit: int) -> None:
        """Whatever failed of a bandit does not matter any more."""
        for about in [about for about in list(self._failures) if about[1] == bandit]:
            self._failures.pop(about, None)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._due or self._can_wait)

    def add(self, work: Work) -> None:
        """Begin one."""
        (self._can_wait if work.can_wait else self._due).append((work.about, work.begin(self._connection)))

    def finish(self) -> None:
        """All those that cannot wait."""
        while self._due:
            self.advance()

    def advance(self, *, at_leisure: bool = False) -> None:
        """One step of the first; of one that can wait only `at_leisure`, and where no other has begun."""
        if not self._due and not at_leisure:
            return
        line = self._due or self._can_wait
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
