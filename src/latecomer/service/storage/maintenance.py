"""Maintenance of the log: when snapshots, compactions, pruning and index segments are due, as background jobs."""

from collections.abc import Callable
from itertools import chain as join

import apsw

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.storage.background import Job, Steps
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.compaction import compact
from latecomer.service.storage.limits import Limits
from latecomer.service.storage.request_id_segments import remove_index
from latecomer.service.storage.request_id_writer import flush_requests, merge_segments
from latecomer.service.storage.retention import prune_rows, remove_chain
from latecomer.service.storage.snapshots import copy_for_snapshot, write_snapshot
from latecomer.service.storage.writer import Writer

DAY = 86_400_000_000


class Maintenance:
    """Schedules background jobs for chains; called with the store's lock held.

    Parameters
    ----------
    writer
        The writer, which runs the jobs between commits.
    snapshot_every
        Events of a bandit after which a snapshot is due; where very many rounds are open, a quarter of them.
    retention
        Microseconds that rows stay after their window; None for ever.
    limits
        Sizes at which compaction sets in.
    """

    def __init__(self, writer: Writer, *, snapshot_every: int, retention: int | None, limits: Limits) -> None:
        self._writer, self._snapshot_every = writer, snapshot_every
        self._min_rows, self._small_rows = limits.compacted_rows, limits.small_rows
        self.retention = retention

    def run_due(self, bandit: Bandit, chain: Chain, now: int, chains: int) -> None:
        """Schedule what is due after events were appended to one of so many chains."""
        small_rows = chain.small_rows
        if small_rows >= self._min_rows and small_rows * chains >= self._small_rows:
            self.compact(chain)
        if chain.unsaved_events >= self._snapshot_every or now - chain.saved_at > DAY:
            self.save(bandit, chain, now)
        if chain.requests.is_full:
            self.index_requests(bandit, chain)

    def save(self, bandit: Bandit, chain: Chain, now: int, *, last: bool = False) -> None:
        """Copy the bandit, and have the copy written once its events are; `last` where the store is closing.

        Rows are pruned only behind a snapshot.
        """
        if not last and (chain.is_saving or chain.unsaved_events < bandit.policy.pending // 4):
            return
        bandit.purchases.forget_ids(chain.pruned_rounds)
        flush, copy = self._take_requests(bandit, chain), copy_for_snapshot(bandit, chain)
        chain.unsaved_events, chain.saved_at, chain.is_saving = 0, now, True

        def begin(connection: apsw.Connection) -> Steps:
            seq, row_checksum = self._writer.heads[bandit.number]
            steps: Steps = join(flush(connection), write_snapshot(connection, copy, seq=seq, row_checksum=row_checksum))
            if self.retention is not None:
                steps = join(steps, prune_rows(connection, bandit, chain, now=now, retention=self.retention))
            return _clear_saving(chain, steps)

        self._writer.run_after_pending(Job(begin, ("snapshot", bandit.number)))
        self._merge_requests(chain)

    def index_requests(self, bandit: Bandit, chain: Chain) -> None:
        """Schedule the writing of the latest request ids, from memory to a segment of the index."""
        self._writer.run_after_pending(Job(self._take_requests(bandit, chain), ("request index", chain.number)))
        self._merge_requests(chain)

    def drop_index(self, number: int) -> None:
        """Schedule the removal of a damaged index: the next opening rebuilds it from the log."""
        job = Job(lambda connection: remove_index(connection, number), ("request index", number))
        self._writer.run_after_pending(job)

    def compact(self, chain: Chain) -> None:
        """Schedule the compaction of the small rows in the log, for when there is nothing else to do."""
        if chain.is_compacting:
            return
        chain.small_rows, chain.is_compacting = 0, True

        def begin(connection: apsw.Connection) -> Steps:
            return compact(connection, chain, until=self._writer.heads[chain.number][0])

        self._writer.run_after_pending(Job(begin, ("compaction", chain.number), deferrable=True))

    def remove_chain(self, number: int) -> None:
        """Schedule the removal of everything of a deleted bandit."""

        def begin(connection: apsw.Connection) -> Steps:
            yield from remove_index(connection, number)
            yield from remove_chain(connection, number)
            self._writer.jobs.forget_failures(number)

        self._writer.run_after_pending(Job(begin, ("removal", number)))

    def _take_requests(self, bandit: Bandit, chain: Chain) -> Callable[[apsw.Connection], Steps]:
        taken, last_round = chain.requests.begin_flush(), bandit.rounds

        def begin(connection: apsw.Connection) -> Steps:
            lock = self._writer.lock
            return flush_requests(connection, chain.number, chain.requests, taken, last_round=last_round, lock=lock)

        return begin

    def _merge_requests(self, chain: Chain) -> None:
        def begin(connection: apsw.Connection) -> Steps:
            pruned, lock = chain.pruned_rounds, self._writer.lock
            return merge_segments(connection, chain.number, chain.requests, pruned_rounds=pruned, lock=lock)

        self._writer.run_after_pending(Job(begin, ("request merge", chain.number), abortable=True))


def _clear_saving(chain: Chain, steps: Steps) -> Steps:
    """Run the steps; however they end, another snapshot may be taken afterwards."""
    try:
        yield from steps
    finally:
        chain.is_saving = False
