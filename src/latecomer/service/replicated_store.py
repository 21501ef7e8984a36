"""A store on PostgreSQL: any number of replicas on one database, exact as one.

A call is run on the whole state while this replica holds the bandit's lock (`storage.postgres.chain_worker`), and is
answered after the commit. Twice a second a replica looks for what others have committed, created, deleted or set. All
of it runs on one event loop.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Self, Unpack

import numpy.typing as npt

from latecomer.errors import StoreError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.call_options import CallOptions
from latecomer.service.bandit.catalogue_call import check_catalogue_call
from latecomer.service.bandit.decision_call import check_decision_call
from latecomer.service.bandit.descriptor import check_policy, resolve_spec
from latecomer.service.bandit.imports import check_import_call
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.durations import parse_retention
from latecomer.service.messages import (
    BanditInfo,
    CatalogueInfo,
    DecisionAnswer,
    Health,
    ImportAnswer,
    ImportBatch,
)
from latecomer.service.replicated_reports import ReplicatedReports
from latecomer.service.report_calls import Apply, ReportCalls
from latecomer.service.storage.listeners import OnCommit, OnDeath, OnTrouble
from latecomer.service.storage.postgres.call_queue import PATIENCE
from latecomer.service.storage.postgres.calls import PendingCall, Repeatable, Report, Work
from latecomer.service.storage.postgres.chain_worker import ChainWorker
from latecomer.service.storage.postgres.connection import UnreachableError
from latecomer.service.storage.postgres.replica import Replica
from latecomer.service.storage.postgres.schema import check_reachable
from latecomer.service.storage.postgres.shared_bandits import SharedBandits
from latecomer.service.storage.postgres.shared_settings import SharedSettings, read_shared

_POLL_SECONDS = 0.3
"""Seconds between two looks at what other replicas have done."""
CONNECTIONS = 4
"""Connections that requests use, at most; one more reads settings and keys."""
READING_SECONDS = 1.0
"""Seconds that a bandit should be read anew in, about: its calls wait, where another replica was faster."""


class ReplicatedStore(ReportCalls["asyncio.Future[VerdictList]"]):
    """Bandits by name, on a database that others share; made by `ReplicatedStore.open`.

    Parameters
    ----------
    address
        The database, postgresql://…
    snapshot_every
        Events of a bandit between two snapshots, at most.
    reading_seconds
        Seconds of processor time that reading the events since a snapshot may take, about, before another is due.
    """

    def __init__(
        self, address: str, *, snapshot_every: int = 100_000, reading_seconds: float = READING_SECONDS
    ) -> None:
        self._replica = Replica(
            address, snapshot_every=snapshot_every, reading_seconds=reading_seconds, connections=CONNECTIONS
        )
        self._bandits = SharedBandits(self._replica)
        self._is_closed = self._is_open = False
        self._expected: dict[int, int] = {}
        """The last commits of all chains when this replica began, or when the database came back."""
        self.settings = SharedSettings(self._replica)
        reports = ReplicatedReports(address, self._bandits, self.refresh, lambda: self.health)
        self.bandit_report, self.explain = reports.bandit_report, reports.explain
        self.stats, self.count_replicas, self.measure_all = reports.stats, reports.count_replicas, reports.measure_all
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = asyncio.Event()

    @classmethod
    async def open(
        cls,
        address: str,
        *,
        snapshot_every: int = 100_000,
        reading_seconds: float = READING_SECONDS,
        retention: str | None = None,
        wait: bool = True,
    ) -> Self:
        """Open a store; without `wait` it is read in the background, as soon as the database answers.

        `FileError` where the database has no store of this version, or, with `wait`, cannot be reached.
        """
        if retention is not None:
            parse_retention(retention)
        store = cls(address, snapshot_every=snapshot_every, reading_seconds=reading_seconds)
        store.settings.wanted_retention = retention
        with nullcontext() if wait else suppress(UnreachableError):
            await asyncio.to_thread(check_reachable, address)
        store._tasks = [asyncio.create_task(store._poll()), asyncio.create_task(store._expire())]
        if wait:
            try:
                await store._wait_ready()
            except BaseException:
                await store.close()
                raise
        return store

    async def _wait_ready(self) -> None:
        while not self.is_ready:
            if self._replica.failure and time.monotonic() - self._replica.failing_since > PATIENCE:
                raise StoreError(self._replica.detail)
            await asyncio.sleep(0.01)

    @property
    def is_ready(self) -> bool:
        """True once this replica has applied what was committed before it began, or before the database came back.

        A bandit that another replica creates meanwhile changes nothing: calls on it wait until it has been read.
        """
        return self._is_open and self._bandits.have_applied(self._expected)

    def decide(
        self,
        name: str,
        actions: npt.ArrayLike | None = None,
        ids: Sequence[str] | None = None,
        *,
        future: "asyncio.Future[Any] | None" = None,
        **options: Unpack[CallOptions],
    ) -> "asyncio.Future[DecisionAnswer]":
        """Choose one of the actions; the answer is durable when the future has it. See `Store.decide`.

        `future` is used instead of a new one, where it is given.
        """
        worker = self._bandits.get(name)
        call = check_decision_call(worker.descriptor.spec.dim, actions, ids, **options)
        return self._submit(worker, Repeatable(call), future)

    def import_batch(self, name: str, batch: ImportBatch) -> "asyncio.Future[ImportAnswer]":
        """Apply a batch of an import; the answer is durable when the future has it. See `Store.import_batch`."""
        worker = self._bandits.get(name)
        return self._submit(worker, Repeatable(check_import_call(worker.descriptor.spec.dim, batch)))

    def put_actions(
        self, name: str, actions: Mapping[str, Any], withdraw: Sequence[str] = (), *, replace: bool = False
    ) -> "asyncio.Future[CatalogueInfo]":
        """Change the catalogue; the answer is durable when the future has it. See `Store.put_actions`."""
        worker = self._bandits.get(name)
        call = check_catalogue_call(worker.descriptor.describe(), actions, withdraw, replace=replace)
        return self._submit(worker, Repeatable(call))

    async def catalogue(self, name: str) -> CatalogueInfo:
        """Describe a bandit's catalogue, as all replicas have left it."""
        found = (await self.refresh(name)).catalogue
        return CatalogueInfo(version=found.version, size=len(found))

    def report(self, name: str, apply: Apply, reports: Any) -> "asyncio.Future[VerdictList]":
        """Report conversions or the like; the verdicts are durable when the future has them. See `ReportCalls`."""
        return self._submit(self._bandits.get(name), Report(apply, reports))

    def _submit(
        self, worker: ChainWorker, work: Work, future: "asyncio.Future[Any] | None" = None
    ) -> "asyncio.Future[Any]":
        self.check_open()
        answer = asyncio.get_running_loop().create_future() if future is None else future
        worker.submit(PendingCall(work, answer, time.monotonic()))
        return answer

    async def find(self, name: str) -> BanditInfo:
        """Describe a bandit that is served; another replica may have created it a moment ago."""
        await self._look_for(name)
        return self._bandits.get(name).descriptor.describe()

    async def describe(self, name: str) -> BanditInfo:
        """Describe a bandit, a quarantined one too."""
        await self._look_for(name)
        return self._bandits.describe(name)

    async def _look_for(self, name: str) -> None:
        if name not in self._bandits.by_name:
            self.check_open()
            await self._bandits.look()

    def list_bandits(self) -> list[BanditInfo]:
        """Describe every bandit, in the order of their names."""
        return [self._bandits.describe(name) for name in sorted(self._bandits.by_name)]

    async def refresh(self, name: str) -> Bandit:
        """Return a bandit with everything that was committed before this call; it must not be changed."""
        self.check_open()
        await self._look_for(name)
        return await self._bandits.get(name).refresh()

    async def create(self, name: str, spec: BanditSpec) -> tuple[BanditInfo, bool]:
        """Create a bandit; return its description, and whether it is new. It is durable by then."""
        policy = check_policy(name, spec)
        self.check_open()
        if name not in self._bandits.by_name:
            await self._replica.run_in_thread(policy.state.code.warm_up)
        return await self._bandits.create(name, resolve_spec(spec), spec)

    async def delete(self, name: str) -> None:
        """Delete a bandit, a quarantined one too, with all its decisions; it is gone for good when this returns."""
        self.check_open()
        await self._bandits.delete(name)

    async def set_retention(self, retention: str) -> None:
        """Change the time that decisions stay in the log; every replica knows within a second."""
        parse_retention(retention)

        async def write() -> bool:
            self.settings.wanted_retention = retention
            await read_shared(self._replica, self.settings)
            return True

        await self._bandits.retry(write)

    async def _poll(self) -> None:
        """Look again and again for what others have done."""
        while not self._is_closed:
            try:
                await self._poll_once()
            except Exception as error:  # noqa: BLE001 - whatever it was, a replica recovers by itself
                await self._replica.report_failure(error)
            await self._pause()

    async def _expire(self) -> None:
        """Give up calls that have waited too long, whatever the database does."""
        while not self._is_closed:
            reason = self._replica.failure or f"the log was not written within {PATIENCE:g} s"
            for worker in list(self._bandits.workers.values()):
                worker.calls.expire(time.monotonic(), f"{reason}: ask again, with the same request id")
            await self._pause()

    async def _pause(self) -> None:
        """Wait for the next look, or for the end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), _POLL_SECONDS)

    async def _poll_once(self) -> None:
        if not self._is_open:
            await asyncio.to_thread(check_reachable, self._replica.address)
        heads = await read_shared(self._replica, self.settings)  # keys before bandits: nobody sees those without a key
        if not self._is_open or self._replica.failure is not None:
            self._expected = heads
        elif self._bandits.have_applied(self._expected):
            self._expected = {}
        await self._bandits.follow(heads)
        if not self._is_open:
            self._is_open = True
            self._bandits.begin_removal()
        self._replica.report_success()

    @property
    def quarantined(self) -> dict[str, str]:
        """The damage of quarantined bandits, by name."""
        return {name: worker.damage for name, worker in sorted(self._bandits.by_name.items()) if worker.damage}

    @property
    def health(self) -> Health:
        """The state of the store: why changes are refused, if they are, and totals since it was opened."""
        status = self._replica.get_status()
        if status.failure is None and not self.is_ready:
            status = status._replace(failure="bandits are being read from the database")
        return Health(**status._asdict(), clock_offset=0.0, quarantined=self.quarantined)

    @property
    def fault(self) -> str | None:
        """None: whatever fails, a replica recovers by itself."""
        return None

    def listen(self, *, on_commit: OnCommit, on_trouble: OnTrouble, on_death: OnDeath = lambda: None) -> None:
        """Set callbacks for each commit, and for failures that begin or end."""
        listeners = self._replica.listeners
        listeners.on_commit, listeners.on_trouble, listeners.on_death = on_commit, on_trouble, on_death

    def check_open(self) -> None:
        """Raise `StoreError` where changes are refused."""
        replica = self._replica
        if self._is_closed:
            raise StoreError("the store is closed: open it again")
        if not self._is_open or (replica.failure and time.monotonic() - replica.failing_since > PATIENCE):
            raise StoreError(replica.failure or "the store is being opened")

    async def close(self) -> None:
        """Run what waits, end the tasks, and close the connections."""
        if self._is_closed:
            return
        self._is_closed = True
        self._closing.set()
        self._replica.stopping.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._bandits.close()
        await self._replica.close()
