"""A batch: what one commit writes, and who waits for it."""

import asyncio


class Segment:
    """One bandit's part of a batch."""

    __slots__ = ("count", "parts", "rounds", "stamp")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.count = self.rounds = self.stamp = 0


class Commit:
    """The events of one commit, and those who wait for it. To others it is a ticket."""

    __slots__ = ("asked", "done", "segments", "threads", "waiters")

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self.waiters: list[asyncio.Future[None]] = []
        self.threads = False
        self.done = False
        self.asked: list[tuple[dict[bytes, object], bytes]] = []
        """Answers kept in memory until they can be read from the log: a table, and the key in it."""


def committed() -> Commit:
    """A ticket for what is there already."""
    ticket = Commit()
    ticket.done = True
    return ticket
