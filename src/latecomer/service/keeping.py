"""When a bandit's snapshot is due, and what goes with it; and when its small rows are bound.

Nothing is pruned but behind a snapshot, and a snapshot is not written before what it stands on is bound.
"""

from itertools import chain

import apsw

from latecomer.service.bandit import Bandit
from latecomer.service.binding import binding
from latecomer.service.pruning import pruning
from latecomer.service.snapshots import freeze, writing
from latecomer.service.writer import Chore, Writer

DAY = 86_400_000_000
LOOSE = 8192
"""Rows of a bandit that may be small: a start reads them in less than a tenth of a second."""


class Keeper:
    """Takes snapshots through the writer.

    Parameters
    ----------
    writer
        What writes them, between commits.
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
        """Freeze the bandit between two rows and have it written behind them; `last` where the desk is closing."""
        if not last and (bandit.saving or bandit.unsaved < bandit.learner.pending // 4):
            return
        bandit.forget_requests()
        frozen = freeze(bandit)
        bandit.unsaved, bandit.saved_at, bandit.saving, bandit.loose = 0, now, True, 0

        def begin(connection: apsw.Connection) -> Chore:
            seq, anchor = self._writer.heads[bandit.number]
            bind = binding(connection, bandit, until=seq, to_the_end=True)
            steps = chain(bind, writing(connection, frozen, seq=seq, anchor=anchor))
            if self.retention is not None:
                steps = chain(steps, pruning(connection, bandit, now=now, retention=self.retention))
            return _until_saved(bandit, steps)

        self._writer.cut(begin)

    def bind(self, bandit: Bandit) -> None:
        """Have small rows bound that are in the log by now."""
        bandit.loose = 0

        def begin(connection: apsw.Connection) -> Chore:
            return binding(connection, bandit, until=self._writer.heads[bandit.number][0], to_the_end=False)

        self._writer.cut(begin)


def _until_saved(bandit: Bandit, steps: Chore) -> Chore:
    """However it ends, another may be taken afterwards."""
    try:
        yield from steps
    finally:
        bandit.saving = False
