"""A store on PostgreSQL: any number of replicas on one database, exact as one.

A call is run on the whole state while this replica holds the bandit's lock (`storage.postgres.chain_worker`), and is
answered after the commit. Twice a second a replica looks for what others have committed, created, deleted or set. All
of it runs on one event loop.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from typing import Any, Self, TypeVar

import numpy.typing as npt
import psycopg

from latecomer.errors import FileError, QuarantinedError, StoreError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.decision_call import check_decision_call
from latecomer.service.bandit.descriptor import (
    BanditDescriptor,
    check_policy,
    check_same_spec,
    make_descriptor,
    resolve_spec,
)
from latecomer.service.bandit.registry import make_unknown_error
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.durations import parse_retention
from latecomer.service.messages import (
    BanditCounts,
    BanditInfo,
    BanditStats,
    Conversion,
    DecisionAnswer,
    Health,
    Revocation,
)
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.listeners import OnCommit, OnDeath, OnTrouble
from latecomer.service.storage.postgres.calls import Decide, PendingCall, Report, Work
from latecomer.service.storage.postgres.chain_worker import DATABASE_ERRORS, PATIENCE, ChainWorker
from latecomer.service.storage.postgres.connection import PostgresConnection, make_connect_error
from latecomer.service.storage.postgres.maintenance import remove_deleted_chains
from latecomer.service.storage.postgres.no_index import NoRequestIndex
from latecomer.service.storage.postgres.registry_chain import RegistryChain
from latecomer.service.storage.postgres.replica import Replica
from latecomer.service.storage.postgres.schema import check_version
from latecomer.service.storage.postgres.shared_settings import SharedSettings, read_shared
from latecomer.service.storage.postgres.statements import Head

_POLL_SECONDS = 0.3
"""Seconds between two looks at what other replicas have done."""
_CONNECTIONS = 4
"""Connections that requests use, at most."""
_RETRY_SECONDS = 0.2
_Answer = TypeVar("_Answer")


class ReplicatedStore:
    """Bandits by name, on a database that others share; made by `ReplicatedStore.open`.

    Parameters
    ----------
    address
        The database, postgresql://…
    snapshot_every
        Events of a bandit between two snapshots.
    """

    def __init__(self, address: str, *, snapshot_every: int = 100_000) -> None:
        self._replica = Replica(address, snapshot_every=snapshot_every, connections=_CONNECTIONS)
        self._replica.failure = "the store is being opened"
        self._replica.on_deleted = self._drop
        self._chain = RegistryChain()
        self._workers: dict[int, ChainWorker] = {}
        self._by_name: dict[str, ChainWorker] = {}
        self._is_closed = self._is_open = False
        self._following: asyncio.Task[None] | None = None
        self._removals: set[asyncio.Task[None]] = set()
        self.settings = SharedSettings(self._replica)
        self._polling: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, address: str, *, snapshot_every: int = 100_000, retention: str | None = None, wait: bool = True
    ) -> Self:
        """Open a store; without `wait` it opens in the background, as soon as the database answers.

        `FileError` where the database cannot be reached, or has no store.
        """
        if retention is not None:
            parse_retention(retention)
        store = cls(address, snapshot_every=snapshot_every)
        store.settings.wanted_retention = retention
        if wait:
            await asyncio.to_thread(_check, address)
        store._polling = asyncio.create_task(store._poll())
        if wait:
            try:
                await store._wait_ready()
            except BaseException:
                await store.close()
                raise
        return store

    async def _wait_ready(self) -> None:
        while not self.is_ready:
            await asyncio.sleep(0.01)

    @property
    def is_ready(self) -> bool:
        """True once every bandit has been read."""
        return self._is_open and all(worker.is_loaded for worker in self._workers.values())

    # ---- events ----

    def decide(
        self,
        name: str,
        actions: npt.ArrayLike,
        ids: Sequence[str] | None = None,
        *,
        request_id: str | None = None,
        body: bytes | None = None,
        future: "asyncio.Future[Any] | None" = None,
    ) -> "asyncio.Future[DecisionAnswer]":
        """Choose one of the actions; the answer is durable when the future has it. See `Store.decide`.

        `future` is used instead of a new one, where it is given.
        """
        worker = self._get(name)
        call = check_decision_call(worker.descriptor.spec.dim, actions, ids, request_id=request_id, body=body)
        return self._submit(worker, Decide(call), future)

    def convert(self, name: str, conversions: Sequence[Conversion]) -> "asyncio.Future[VerdictList]":
        """Report conversions; the verdicts are durable when the future has them."""
        return self._submit(self._get(name), Report(Bandit.convert, conversions))

    def revoke(self, name: str, revocations: Sequence[Revocation]) -> "asyncio.Future[VerdictList]":
        """Take conversions back; the verdicts are durable when the future has them."""
        return self._submit(self._get(name), Report(Bandit.revoke, revocations))

    def _submit(
        self, worker: ChainWorker, work: Work, future: "asyncio.Future[Any] | None" = None
    ) -> "asyncio.Future[Any]":
        self.check_open()
        answer = asyncio.get_running_loop().create_future() if future is None else future
        worker.submit(PendingCall(work, answer, time.monotonic()))
        return answer

    # ---- bandits ----

    def _get(self, name: str) -> ChainWorker:
        worker = self._by_name.get(name)
        if worker is None:
            raise make_unknown_error(name)
        if worker.damage:
            raise QuarantinedError(
                f"bandit {name!r} is quarantined: {worker.damage}, or go on as `latecomer log verify` says; other "
                "bandits are served"
            )
        return worker

    async def find(self, name: str) -> BanditInfo:
        """Describe a bandit that is served; another replica may have created it a moment ago."""
        worker = self._by_name.get(name)
        if worker is None:
            await self._follow_registry()
        return self._get(name).descriptor.describe()

    async def describe(self, name: str) -> BanditInfo:
        """Describe a bandit, a quarantined one too."""
        if name not in self._by_name:
            await self._follow_registry()
        worker = self._by_name.get(name)
        if worker is None:
            raise make_unknown_error(name)
        return worker.descriptor.describe(quarantined=bool(worker.damage))

    async def _follow_registry(self) -> None:
        """Look for bandits that others have created or deleted; calls at the same time share one look."""
        self.check_open()
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._look())
        await asyncio.shield(self._following)

    async def _look(self) -> None:
        try:
            await self._chain.follow(self._replica.pool)
        except DATABASE_ERRORS as error:
            await self._replica.report_failure(error)
            raise StoreError(str(self._replica.failure)) from None
        self._match_workers()

    def list_bandits(self) -> list[BanditInfo]:
        """Describe every bandit, in the order of their names."""
        return [
            self._by_name[name].descriptor.describe(quarantined=bool(self._by_name[name].damage))
            for name in sorted(self._by_name)
        ]

    async def stats(self, name: str) -> BanditStats:
        """Return what a bandit has counted and learned, on all replicas."""
        self.check_open()
        return (await self._get(name).refresh()).stats()

    async def refresh(self, name: str) -> Bandit:
        """Return a bandit with everything that was committed before this call; it must not be changed."""
        return await self._get(name).refresh()

    async def set_retention(self, retention: str) -> None:
        """Change the time that decisions stay in the log; every replica knows within a second."""
        parse_retention(retention)

        async def write() -> bool:
            self.settings.wanted_retention = retention
            await read_shared(self._replica, self.settings)
            return True

        await self._retry(write)

    def count_all(self) -> list[BanditCounts]:
        """Return the counts of every bandit, as of a moment ago."""
        return [worker.bandit.count() for worker in self._by_name.values() if worker.bandit is not None]

    async def create(self, name: str, spec: BanditSpec) -> tuple[BanditInfo, bool]:
        """Create a bandit; return its description, and whether it is new. It is durable by then."""
        requested, spec = spec, resolve_spec(spec)
        policy = check_policy(name, requested)
        if name not in self._by_name:
            await asyncio.to_thread(policy.state.code.warm_up)
        made: list[BanditDescriptor] = []
        descriptor = await self._retry(lambda: self._create(name, spec, requested, made))
        is_new = any(mine.uid == descriptor.uid for mine in made)
        if not is_new:
            self._get(name)
            check_same_spec(descriptor, requested)
        return descriptor.describe(), is_new

    async def _create(
        self, name: str, spec: BanditSpec, requested: BanditSpec, made: list[BanditDescriptor]
    ) -> BanditDescriptor | None:
        """Try to create a bandit; None where another attempt is needed. `made` has what earlier attempts made."""
        async with self._replica.pool.take() as connection:
            locked = await self._chain.lock(connection)
            if locked is None:
                return None
            self._match_workers()
            existing = self._chain.find(name)
            if existing is not None:
                await connection.execute("ROLLBACK")
                return existing
            descriptor = make_descriptor(self._chain.next_number, name, spec, requested=requested, stamp=locked.now)
            made.append(descriptor)
            begun = await self._chain.commit_creation(connection, descriptor)
        bandit = Bandit(descriptor, descriptor.make_policy())
        loaded = bandit, Chain(descriptor.number, NoRequestIndex()), Head(begun.seq, begun.link, 0, 0)
        self._workers[descriptor.number] = ChainWorker(self._replica, descriptor, loaded)
        await self._look()
        return descriptor

    async def delete(self, name: str) -> None:
        """Delete a bandit, a quarantined one too, with all its decisions; it is gone for good when this returns."""
        deleted: list[int] = []
        await self._retry(lambda: self._delete(name, deleted))
        if not deleted:
            raise make_unknown_error(name)
        self._begin_removal()

    async def _delete(self, name: str, deleted: list[int]) -> bool | None:
        async with self._replica.pool.take() as connection:
            locked = await self._chain.lock(connection)
            if locked is None:
                return None
            self._match_workers()
            existing = self._chain.find(name)
            if existing is None or existing.number in deleted:
                await connection.execute("ROLLBACK")
                return True
            deleted.append(existing.number)
            await self._chain.commit_deletion(connection, existing.number, locked.now)
        await self._look()
        return True

    def _begin_removal(self) -> None:
        """Remove the rows of deleted bandits, in the background."""
        removal = asyncio.create_task(self._remove_rows())
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    async def _remove_rows(self) -> None:
        try:
            await asyncio.to_thread(remove_deleted_chains, self._replica.address)
        except (psycopg.Error, OSError, FileError) as error:  # the next start removes them
            self._replica.snapshot_failure = f"{type(error).__name__}: {error}"

    async def _retry(self, attempt: Callable[[], Awaitable[_Answer | None]]) -> _Answer:
        """Attempt a change until it succeeds, as long as a caller is patient."""
        self.check_open()
        end = time.monotonic() + PATIENCE
        while True:
            try:
                answer = await attempt()
                if answer is not None:
                    self._replica.report_success()
                    return answer
                await self._look()
            except DATABASE_ERRORS as error:
                await self._replica.report_failure(error)
                if time.monotonic() > end:
                    raise StoreError(str(self._replica.failure)) from None
                await asyncio.sleep(_RETRY_SECONDS)

    # ---- what other replicas do ----

    async def _poll(self) -> None:
        """Look twice a second for what others have done; give up calls that have waited too long."""
        while not self._is_closed:
            try:
                await self._poll_once()
            except (*DATABASE_ERRORS, FileError, StoreError) as error:
                await self._replica.report_failure(error)
            reason = self._replica.failure or f"the log was not written within {PATIENCE:g} s"
            for worker in list(self._workers.values()):
                worker.expire(time.monotonic(), f"{reason}: ask again, with the same request id")
            await asyncio.sleep(_POLL_SECONDS)

    async def _poll_once(self) -> None:
        if not self._is_open:
            await asyncio.to_thread(_check, self._replica.address)
            await self._chain.follow(self._replica.pool)
            self._match_workers()
        heads = await read_shared(self._replica, self.settings)
        if heads.get(0, 0) > self._chain.seq:
            await self._look()
        for number, worker in list(self._workers.items()):
            if worker.is_loaded and heads.get(number, 0) > worker.seq:
                worker.follow()
        if not self._is_open:
            self._is_open = True
            self._begin_removal()
        self._replica.report_success()

    def _match_workers(self) -> None:
        """Begin a worker for each new bandit, and end those of deleted ones."""
        alive = {number: found for number, found in self._chain.descriptors.items() if not found.is_unfinished}
        for number in [number for number in self._workers if number not in alive]:
            self._drop(number)
        for number, descriptor in alive.items():
            if number not in self._workers:
                self._workers[number] = ChainWorker(self._replica, descriptor)
        self._by_name = {worker.name: worker for worker in self._workers.values()}

    def _drop(self, number: int) -> None:
        worker = self._workers.pop(number, None)
        if worker is not None:
            worker.discard()
            self._by_name = {left.name: left for left in self._workers.values()}

    # ---- the whole ----

    @property
    def quarantined(self) -> dict[str, str]:
        """The damage of quarantined bandits, by name."""
        return {name: worker.damage for name, worker in sorted(self._by_name.items()) if worker.damage}

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
        if self._polling is not None:
            await self._polling
        for worker in self._workers.values():
            with suppress(StoreError):
                await worker.stop()
        await asyncio.gather(*self._removals)
        await self._replica.pool.drop_idle()


def _check(address: str) -> None:
    """Raise `FileError` where a database cannot be reached or has no store of this version."""
    try:
        with closing(PostgresConnection(address, read_only=True)) as connection:
            check_version(connection, address)
    except psycopg.Error as error:
        raise make_connect_error(address, error) from None
