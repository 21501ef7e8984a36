"""When a snapshot of a bandit is due, and what goes with it: nothing is pruned but behind one. And what is bound."""

from collections.abc import Callable
from itertools import chain

import apsw

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.storage.background import Chore, Job
from latecomer.service.storage.compaction import plan_compaction
from latecomer.service.storage.request_writer import flush, merge
from latecomer.service.storage.retention import pruning
from latecomer.service.storage.snapshots import copy_for_snapshot, writing
from latecomer.service.storage.writer import Writer

DAY = 86_400_000_000
LOOSE = 8192
"""Rows, all bandits' together, that may be small before they are bound: a start reads them in a tenth of a second."""


class Maintenance:
    """Takes snapshots and binds small rows, through the writer.

    Parameters
    ----------
    writer
        What does it, between commits.
    every
        Events of a bandit after which one is due; where very many rounds are open, a quarter of them.
    retention
        Microseconds that rows stay after their window; None for ever.
    """

    def __init__(self, writer: Writer, *, every: int, retention: int | None) -> None:
        self.every = every
        self._writer = writer
        self.retention = retention

    def save(self, bandit: Bandit, now: int, *, last: bool = False) -> None:
        """Freeze the bandit between two rows and have it written behind them; `last` where the store is closing."""
        if not last and (bandit.saving or bandit.unsaved < bandit.policy.pending // 4):
            return
        bandit.ids.forget(bandit.forgotten)
        flush_requests, frozen = self._take_requests(bandit), copy_for_snapshot(bandit)
        bandit.unsaved, bandit.saved_at, bandit.saving = 0, now, True

        def begin(connection: apsw.Connection) -> Chore:
            seq, anchor = self._writer.heads[bandit.number]
            steps: Chore = chain(flush_requests(connection), writing(connection, frozen, seq=seq, anchor=anchor))
            if self.retention is not None:
                steps = chain(steps, pruning(connection, bandit, now=now, retention=self.retention))
            return _until_saved(bandit, steps)

        self._writer.cut(Job(begin, ("snapshot", bandit.number)))
        self._merge_requests(bandit)

    def index_requests(self, bandit: Bandit) -> None:
        """Have the latest request ids moved from memory into the file's index."""
        self._writer.cut(Job(self._take_requests(bandit), ("request index", bandit.number)))
        self._merge_requests(bandit)

    def _take_requests(self, bandit: Bandit) -> Callable[[apsw.Connection], Chore]:
        taken, last_round = bandit.requests.begin_flush(), bandit.rounds

        def begin(connection: apsw.Connection) -> Chore:
            lock = self._writer.lock
            return flush(connection, bandit.number, bandit.requests, taken, last_round=last_round, lock=lock)

        return begin

    def _merge_requests(self, bandit: Bandit) -> None:
        def begin(connection: apsw.Connection) -> Chore:
            return merge(connection, bandit.number, bandit.requests, gone=bandit.forgotten, lock=self._writer.lock)

        self._writer.cut(Job(begin, ("request merge", bandit.number), can_stop=True))

    def bind(self, bandit: Bandit) -> None:
        """Have small rows bound that are in the log by now, once there is nothing else to do."""
        if bandit.binding:
            return
        bandit.loose, bandit.binding = 0, True

        def begin(connection: apsw.Connection) -> Chore:
            return plan_compaction(connection, bandit, until=self._writer.heads[bandit.number][0])

        self._writer.cut(Job(begin, ("binding", bandit.number), can_wait=True))


def _until_saved(bandit: Bandit, steps: Chore) -> Chore:
    """However it ends, another may be taken afterwards."""
    try:
        yield from steps
    finally:
        bandit.saving = False
