"""A replicated store for callers in threads: an event loop of its own runs it; methods return what is durable."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from threading import Thread
from typing import Any, Self, TypeVar, Unpack

import numpy.typing as npt

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.call_options import CallOptions
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_report import BanditReport
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.decision_batch import Arguments, Outcome, decide_shared_batch
from latecomer.service.decision_report import DecisionExplanation
from latecomer.service.log_interface import DoneTicket, Ticket
from latecomer.service.messages import (
    Activation,
    BanditInfo,
    BanditStats,
    CatalogueInfo,
    Conversion,
    Correction,
    DecisionAnswer,
    Health,
    ImportAnswer,
    ImportBatch,
    Revocation,
    StageReport,
)
from latecomer.service.replicated_store import ReplicatedStore

_Answer = TypeVar("_Answer")


class BlockingStore:
    """The methods of `Store` that a bandit in a process needs, on a database that others share.

    Parameters
    ----------
    address
        The database, postgresql://…
    snapshot_every, retention
        See `ReplicatedStore.open`.
    """

    def __init__(self, address: str, *, snapshot_every: int = 100_000, retention: str | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="latecomer-store", daemon=True)
        self._thread.start()
        self._is_closed = False
        try:
            opening = ReplicatedStore.open(address, snapshot_every=snapshot_every, retention=retention)
            self._store = self._run(opening)
        except BaseException:
            self._stop()
            raise

    def _run(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def decide(
        self,
        name: str,
        actions: npt.ArrayLike | None = None,
        ids: Sequence[str] | None = None,
        **options: Unpack[CallOptions],
    ) -> tuple[DecisionAnswer, Ticket]:
        """Choose one of the actions; see `Store.decide`."""

        async def call() -> DecisionAnswer:
            return await self._store.decide(name, actions, ids, **options)

        return self._run(call()), DoneTicket()

    def decide_many(self, name: str, requests: Sequence[Arguments | Exception]) -> list[Outcome]:
        """Make many decisions; see `decision_batch`."""
        return self._run(decide_shared_batch(self._store, name, requests))

    def import_batch(self, name: str, batch: ImportBatch) -> tuple[ImportAnswer, Ticket]:
        """Apply a batch of an import; see `Store.import_batch`."""

        async def call() -> ImportAnswer:
            return await self._store.import_batch(name, batch)

        return self._run(call()), DoneTicket()

    def put_actions(
        self, name: str, actions: Mapping[str, Any], withdraw: Sequence[str] = (), *, replace: bool = False
    ) -> tuple[CatalogueInfo, Ticket]:
        """Change the catalogue; see `Store.put_actions`."""

        async def call() -> CatalogueInfo:
            return await self._store.put_actions(name, actions, withdraw, replace=replace)

        return self._run(call()), DoneTicket()

    def catalogue(self, name: str) -> CatalogueInfo:
        """Describe a bandit's catalogue."""
        return self._run(self._store.catalogue(name))

    def convert(self, name: str, conversions: Sequence[Conversion]) -> tuple[VerdictList, Ticket]:
        """Report conversions."""

        async def call() -> VerdictList:
            return await self._store.convert(name, conversions)

        return self._run(call()), DoneTicket()

    def revoke(self, name: str, revocations: Sequence[Revocation]) -> tuple[VerdictList, Ticket]:
        """Take conversions back."""

        async def call() -> VerdictList:
            return await self._store.revoke(name, revocations)

        return self._run(call()), DoneTicket()

    def correct(self, name: str, corrections: Sequence[Correction]) -> tuple[VerdictList, Ticket]:
        """Replace what decisions are credited with."""

        async def call() -> VerdictList:
            return await self._store.correct(name, corrections)

        return self._run(call()), DoneTicket()

    def activate(self, name: str, activations: Sequence[Activation]) -> tuple[VerdictList, Ticket]:
        """Report deferred decisions that were shown."""

        async def call() -> VerdictList:
            return await self._store.activate(name, activations)

        return self._run(call()), DoneTicket()

    def freeze(self, name: str, is_frozen: bool) -> tuple[VerdictList, Ticket]:
        """Have a bandit decide without learning, or learn again; see `Store.freeze`."""

        async def call() -> VerdictList:
            return await self._store.freeze(name, is_frozen)

        return self._run(call()), DoneTicket()

    def report_stages(self, name: str, reports: Sequence[StageReport]) -> tuple[VerdictList, Ticket]:
        """Report stages that decisions have reached."""

        async def call() -> VerdictList:
            return await self._store.report_stages(name, reports)

        return self._run(call()), DoneTicket()

    def wait(self, ticket: Ticket, timeout: float | None = None) -> None:
        """Return: what these methods return is durable."""

    def create(self, name: str, spec: BanditSpec) -> tuple[BanditInfo, bool]:
        """Create a bandit."""
        return self._run(self._store.create(name, spec))

    def delete(self, name: str) -> None:
        """Delete a bandit."""
        self._run(self._store.delete(name))

    def info(self, name: str) -> BanditInfo:
        """Describe a bandit that is served."""
        return self._run(self._store.find(name))

    def bandit_report(self, name: str, since: datetime | None = None, until: datetime | None = None) -> BanditReport:
        """Report on a bandit; see `StoreReports.bandit_report`."""
        return self._run(self._store.bandit_report(name, since, until))

    def explain(self, name: str, decision: DecisionAnswer | str) -> DecisionExplanation:
        """Explain a decision; see `StoreReports.explain`."""
        return self._run(self._store.explain(name, decision))

    def stats(self, name: str) -> BanditStats:
        """Return what a bandit has counted and learned, on all replicas."""
        return self._run(self._store.stats(name))

    def read_bandit(self, name: str) -> Bandit:
        """Return a bandit with everything that was committed before this call; it must not be changed."""
        return self._run(self._store.refresh(name))

    @property
    def health(self) -> Health:
        """The state of the store."""
        return self._store.health

    def set_retention(self, retention: str) -> None:
        """Change the time that decisions stay in the log ("7d", "forever")."""
        self._run(self._store.set_retention(retention))

    def close(self) -> None:
        """Close the connections, and end the loop."""
        if not self._is_closed:
            self._is_closed = True
            self._run(self._store.close())
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
