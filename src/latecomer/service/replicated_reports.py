"""Reports of a store on a database: the bandit on the event loop, rows of the log in a thread."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from msgspec import structs

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.bandit_view import take_view
from latecomer.service.bandit.decision_explanation import explain_choice, find_choice, find_decision
from latecomer.service.bandit.measures import BanditMeasures, measure_bandit
from latecomer.service.bandit.range_count import count_range
from latecomer.service.bandit.recent_decisions import add_recent
from latecomer.service.bandit.report import make_report, make_stats
from latecomer.service.bandit_report import BanditReport
from latecomer.service.decision_report import DecisionExplanation
from latecomer.service.messages import BanditStats, DecisionAnswer, Health, decision_id_of
from latecomer.service.storage.postgres.shared_bandits import SharedBandits
from latecomer.service.storage.postgres.shared_rows import count_replicas, read_shared_rows
from latecomer.service.store_reports import to_stamp


class ReplicatedReports:
    """Makes reports on the event loop of a replica.

    Parameters
    ----------
    address
        The database.
    bandits
        The bandits as this replica has them.
    refresh
        Returns a bandit with everything that was committed before the call.
    read_health
        Returns the state of the replica.
    """

    def __init__(
        self,
        address: str,
        bandits: SharedBandits,
        refresh: Callable[[str], Awaitable[Bandit]],
        read_health: Callable[[], Health],
    ) -> None:
        self._bandits, self._refresh, self._read_health = bandits, refresh, read_health
        self._rows_from = partial(read_shared_rows, address)
        self._count_replicas = partial(count_replicas, address)

    async def stats(self, name: str) -> BanditStats:
        """Return what a bandit has counted and learned, on all replicas."""
        bandit = await self._refresh(name)
        return make_stats(bandit, now=bandit.stamp, health=self._read_health())

    def measure_all(self) -> list[BanditMeasures]:
        """Measure every bandit, as of a moment ago."""
        found = (worker.bandit for worker in self._bandits.by_name.values())
        return [measure_bandit(bandit, now=bandit.stamp) for bandit in found if bandit is not None]

    async def bandit_report(
        self, name: str, since: datetime | None = None, until: datetime | None = None
    ) -> BanditReport:
        """Report on a bandit: counts of all replicas, health of this one; see `StoreReports.bandit_report`."""
        bandit, only = await self._refresh(name), None
        if since is not None or until is not None:
            count = partial(count_range, take_view(bandit), self._rows_from)
            only = await asyncio.to_thread(count, since=to_stamp(since), until=to_stamp(until))
            bandit = await self._refresh(name)
        begin = time.thread_time()
        report = make_report(bandit, now=bandit.stamp, health=self._read_health(), only=only)
        view, made = take_view(bandit), time.thread_time() - begin

        def add() -> BanditReport:
            begin = time.thread_time()
            found = add_recent(report, view, self._rows_from)
            return structs.replace(found, processor_seconds=made + time.thread_time() - begin)

        return await asyncio.to_thread(add)

    async def explain(self, name: str, decision: DecisionAnswer | str) -> DecisionExplanation:
        """Explain a decision; see `StoreReports.explain`."""
        bandit, decision_id = await self._refresh(name), decision_id_of(decision)
        round_, view = find_decision(bandit, decision_id), take_view(bandit)
        choice = await asyncio.to_thread(find_choice, view, self._rows_from, decision_id, round_)
        return explain_choice(await self._refresh(name), view, choice)

    async def count_replicas(self) -> int | None:
        """Count the replicas that are connected to the database; None where that cannot be told."""
        return await asyncio.to_thread(self._count_replicas)
