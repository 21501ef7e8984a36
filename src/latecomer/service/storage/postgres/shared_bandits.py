"""The bandits of a replica by name: those that the store's own chain has, each with its worker."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import psycopg

from latecomer.errors import FileError, QuarantinedError, StoreError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import BanditDescriptor, check_same_spec, make_descriptor
from latecomer.service.bandit.registry import make_unknown_error
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import BanditInfo
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.postgres.call_queue import PATIENCE
from latecomer.service.storage.postgres.chain_worker import ChainWorker
from latecomer.service.storage.postgres.connection import DATABASE_ERRORS, RETRIED
from latecomer.service.storage.postgres.maintenance import remove_deleted_chains
from latecomer.service.storage.postgres.messages import roll_back
from latecomer.service.storage.postgres.no_index import NoRequestIndex
from latecomer.service.storage.postgres.registry_chain import RegistryChain
from latecomer.service.storage.postgres.replica import Replica

_RETRY_SECONDS = 0.2
_Answer = TypeVar("_Answer")


class SharedBandits:
    """Bandits that any replica may create or delete; only one event loop uses it.

    Parameters
    ----------
    replica
        What the bandits of a replica share.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica, self._chain = replica, RegistryChain()
        replica.on_deleted = self._drop
        self.workers: dict[int, ChainWorker] = {}
        self.by_name: dict[str, ChainWorker] = {}
        self._looking: asyncio.Task[None] | None = None
        self._removals: set[asyncio.Task[None]] = set()

    # ---- reading ----

    def get(self, name: str) -> ChainWorker:
        """Return a bandit's worker; `UnknownBanditError` or `QuarantinedError` where it is not served."""
        worker = self.by_name.get(name)
        if worker is None:
            raise make_unknown_error(name)
        if worker.damage:
            raise QuarantinedError(
                f"bandit {name!r} is quarantined: {worker.damage}, or go on as `latecomer log verify` says; other "
                "bandits are served"
            )
        return worker

    def describe(self, name: str) -> BanditInfo:
        """Describe a bandit, a quarantined one too."""
        worker = self.by_name.get(name)
        if worker is None:
            raise make_unknown_error(name)
        return worker.descriptor.describe(quarantined=bool(worker.damage))

    def have_applied(self, heads: dict[int, int]) -> bool:
        """Tell whether all bandits have these commits, as far as they still exist."""
        found = ((self.workers.get(number), seq) for number, seq in heads.items())
        return all(worker is None or worker.has_applied(seq) for worker, seq in found)

    async def follow(self, heads: dict[int, int]) -> None:
        """Apply what other replicas have committed, as of the last commits of all chains."""
        if heads.get(0, 0) > self._chain.seq:
            await self.look()
        for number, worker in list(self.workers.items()):
            if not worker.has_applied(heads.get(number, 0)):
                worker.follow()

    async def look(self) -> None:
        """Look for bandits that others have created or deleted; calls at the same time share the next look."""
        running = self._looking
        if running is not None and not running.done():  # it may have read before something was committed
            await asyncio.wait([running])
        if self._looking is running:
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(cast("asyncio.Task[None]", self._looking))

    async def _look(self) -> None:
        try:
            await self._chain.follow(self._replica.pool)
        except DATABASE_ERRORS as error:
            await self._replica.report_failure(error)
            raise StoreError(str(self._replica.failure)) from None
        self._match()

    def _match(self) -> None:
        """Begin a worker for each new bandit, and end those of deleted ones."""
        alive = {number: found for number, found in self._chain.descriptors.items() if not found.is_unfinished}
        for number in [number for number in self.workers if number not in alive]:
            self._drop(number)
        for number, descriptor in alive.items():
            if number not in self.workers:
                self.workers[number] = ChainWorker(self._replica, descriptor)
        self.by_name = {worker.name: worker for worker in self.workers.values()}

    def _drop(self, number: int) -> None:
        worker = self.workers.pop(number, None)
        if worker is not None:
            worker.discard()
            self.by_name = {left.name: left for left in self.workers.values()}

    # ---- changes ----

    async def create(self, name: str, spec: BanditSpec, requested: BanditSpec) -> tuple[BanditInfo, bool]:
        """Create a bandit; return its description, and whether it is new. It is durable by then."""
        made: list[BanditDescriptor] = []
        descriptor = await self.retry(lambda: self._create(name, spec, requested, made))
        is_new = any(mine.uid == descriptor.uid for mine in made)
        if not is_new:
            self.get(name)
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
            self._match()
            existing = self._chain.find(name)
            if existing is not None:
                await roll_back(connection)
                return existing
            descriptor = make_descriptor(self._chain.next_number, name, spec, requested=requested, stamp=locked.now)
            made.append(descriptor)
            begun = await self._chain.commit_creation(connection, descriptor)
        bandit = Bandit(descriptor, descriptor.make_policy())
        chain = Chain(descriptor.number, NoRequestIndex())
        if descriptor.number not in self.workers:
            self.workers[descriptor.number] = ChainWorker(self._replica, descriptor, (bandit, chain, begun))
        await self._look()
        return descriptor

    async def delete(self, name: str) -> None:
        """Delete a bandit, a quarantined one too, with all its decisions; it is gone for good when this returns."""
        deleted: list[int] = []
        await self.retry(lambda: self._delete(name, deleted))
        if not deleted:
            raise make_unknown_error(name)
        self.begin_removal()

    async def _delete(self, name: str, deleted: list[int]) -> bool | None:
        async with self._replica.pool.take() as connection:
            locked = await self._chain.lock(connection)
            if locked is None:
                return None
            self._match()
            existing = self._chain.find(name)
            if existing is None or (deleted and existing.number != deleted[0]):
                await roll_back(connection)  # an earlier attempt has succeeded unseen
                return True
            deleted[:] = [existing.number]
            await self._chain.commit_deletion(connection, existing.number, locked.now)
        await self._look()
        return True

    async def retry(self, attempt: Callable[[], Awaitable[_Answer | None]]) -> _Answer:
        """Attempt a change until it succeeds, as long as a caller is patient."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                answer = await attempt()
                if answer is not None:
                    self._replica.report_success()
                    return answer
                await self.look()
            except RETRIED as error:
                if time.monotonic() > end:
                    raise StoreError(f"the database has ended the transaction again and again: {error}") from None
            except DATABASE_ERRORS as error:
                await self._replica.report_failure(error)
                if time.monotonic() > end:
                    raise StoreError(str(self._replica.failure)) from None
                await asyncio.sleep(_RETRY_SECONDS)

    def begin_removal(self) -> None:
        """Remove the rows of deleted bandits, in the background."""
        removal = asyncio.create_task(self._remove_rows())
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    async def _remove_rows(self) -> None:
        try:
            await asyncio.to_thread(remove_deleted_chains, self._replica.address, self._replica.stopping)
        except (psycopg.Error, OSError, FileError) as error:  # the next start removes them
            self._replica.snapshot_failure = f"{type(error).__name__}: {error}"

    async def close(self) -> None:
        """Run what waits, and end the tasks."""
        stops = [worker.stop() for worker in list(self.workers.values())]
        await asyncio.gather(*stops, *self._removals, return_exceptions=True)
