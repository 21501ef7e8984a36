"""The access of the server to its store: one on this machine, or one on a database that other replicas share.

Both have the same methods. A local store answers at once, with a ticket to wait for; a replicated one answers when the
commit is done.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from latecomer.errors import UnknownBanditError
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.decision_batch import Arguments, Outcome, decide_batch, decide_group, decide_shared_batch
from latecomer.service.http.daemon_threads import run_in_daemon_thread
from latecomer.service.http.pending_decision import Parsed, PendingDecision, get_arguments

if TYPE_CHECKING:
    from datetime import datetime

    from latecomer.service.bandit.verdict_list import VerdictList
    from latecomer.service.bandit_report import BanditReport
    from latecomer.service.bandit_spec import BanditSpec
    from latecomer.service.decision_report import DecisionExplanation
    from latecomer.service.http.metrics import Metrics
    from latecomer.service.http.tracing import Tracing
    from latecomer.service.log_interface import Ticket
    from latecomer.service.messages import BanditInfo, BanditStats, CatalogueInfo, ImportAnswer, ImportBatch
    from latecomer.service.replicated_store import ReplicatedStore
    from latecomer.service.store import Store

Decisions = Sequence[tuple[PendingDecision, Parsed]]
Batch = Sequence[Arguments | DecisionCall | Exception]
_TURN_SECONDS = 0.1
"""Seconds that one batch may hold up other requests, about."""
_ON_THE_LOOP = 32
"""Requests of a batch up to which it is decided on the loop; a thread is woken in the time of a few decisions."""
ReportKind = Literal["convert", "revoke", "correct", "activate", "report_stages", "freeze"]


_NOTHING: AbstractContextManager[Any] = nullcontext()


def _trace_nothing(_: str) -> AbstractContextManager[Any]:
    return _NOTHING


class StoreAccess(Protocol):
    """The store's methods for routes; what they return is durable."""

    async def find(self, name: str) -> "BanditInfo":
        """Describe a bandit that is served."""

    async def describe(self, name: str) -> "BanditInfo":
        """Describe a bandit, a quarantined one too."""

    def decide_all(self, decisions: Decisions) -> None:
        """Make decisions; their futures are resolved once they are durable."""

    async def decide_batch(self, name: str, requests: Batch) -> list[Outcome]:
        """Make the decisions of a batch; an answer or an error for each, in its place."""

    async def report(self, kind: ReportKind, name: str, reports: Any) -> "VerdictList":
        """Report conversions, revocations or activations, or freeze a bandit."""

    async def import_batch(self, name: str, batch: "ImportBatch") -> "ImportAnswer":
        """Apply a batch of an import."""

    async def put_actions(
        self, name: str, actions: Mapping[str, Any], withdraw: Sequence[str], *, replace: bool
    ) -> "CatalogueInfo":
        """Change a bandit's catalogue."""

    async def catalogue(self, name: str) -> "CatalogueInfo":
        """Describe a bandit's catalogue."""

    async def stats(self, name: str) -> "BanditStats":
        """Return what a bandit has counted and learned."""

    async def bandit_report(
        self, name: str, since: "datetime | None" = None, until: "datetime | None" = None
    ) -> "BanditReport":
        """Report on a bandit, or on its decisions of a range of time."""

    async def explain(self, name: str, decision_id: str) -> "DecisionExplanation":
        """Explain a decision."""

    async def count_replicas(self) -> int | None:
        """Count the replicas of a shared store; None where it is not shared."""

    async def create(self, name: str, spec: "BanditSpec") -> "tuple[BanditInfo, bool]":
        """Create a bandit; return its description, and whether it is new."""

    async def delete(self, name: str) -> None:
        """Delete a bandit."""


class LocalAccess:
    """A store that this process owns."""

    def __init__(self, store: "Store", metrics: "Metrics", tracing: "Tracing | None" = None) -> None:
        self._store, self._metrics = store, metrics
        self._trace = _trace_nothing if tracing is None else tracing.child
        self._thread = ThreadPoolExecutor(1, "latecomer-batches")

    async def find(self, name: str) -> "BanditInfo":
        """Describe a bandit that is served."""
        return self._store.info(name)

    async def describe(self, name: str) -> "BanditInfo":
        """Describe a bandit; where there is none, a deletion of a moment ago is durable by then."""
        try:
            return self._store.describe(name)
        except UnknownBanditError:
            await self._store.wait_async(self._store.registry_ticket)
            raise

    def decide_all(self, decisions: Decisions) -> None:
        """Make decisions in one group, and have their futures resolved by its commit."""
        waiting: dict[Ticket, list[PendingDecision]] = {}
        by_bandit: dict[str, list[tuple[PendingDecision, Parsed]]] = {}
        for each in decisions:
            by_bandit.setdefault(each[0].info.name, []).append(each)
        with self._store.group():
            for name, group in by_bandit.items():
                outcomes = self._decide_group(name, [decision for _, decision in group])
                for (pending, _), (outcome, ticket) in zip(group, outcomes, strict=True):
                    if ticket is None or isinstance(outcome, Exception):
                        pending.future.set_exception(cast(Exception, outcome))
                    else:
                        pending.answer = outcome
                        waiting.setdefault(ticket, []).append(pending)
        made = time_ns()
        for ticket, made_together in waiting.items():
            for pending in made_together:
                pending.is_waiting, pending.made_at = True, made
            self._resolve_when_durable(ticket, [pending.future for pending in made_together])

    def _decide_group(self, name: str, decisions: list[Parsed]) -> "list[tuple[Outcome, Ticket | None]]":
        requests = [each if isinstance(each, DecisionCall) else each.arguments() for each in decisions]
        try:
            return decide_group(self._store, name, requests)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer to every request of the group
            return [(error, None)] * len(decisions)

    async def decide_batch(self, name: str, requests: Batch) -> list[Outcome]:
        """Make the decisions of a batch in one group, and wait for its commit.

        Meanwhile the loop reads the next: machine code needs no lock of Python's. Where it takes long (before there is
        machine code), other requests get their turn in between.
        """
        outcomes: list[Outcome] = []
        tickets: dict[Ticket, None] = {}
        decide = partial(decide_batch, self._store, name, seconds=_TURN_SECONDS)
        while len(outcomes) < len(requests):
            rest = requests[len(outcomes) :]
            if len(rest) <= _ON_THE_LOOP:
                decided, latest = decide(rest)
                await asyncio.sleep(0)
            else:
                decided, latest = await asyncio.get_running_loop().run_in_executor(self._thread, decide, rest)
            outcomes += decided
            tickets |= dict.fromkeys(latest)
        for ticket in tickets:
            await self._wait(ticket)
        return outcomes

    async def report(self, kind: ReportKind, name: str, reports: Any) -> "VerdictList":
        """Report conversions, revocations or activations, or freeze a bandit, and wait for the commit."""
        verdicts: VerdictList
        with self._trace("store"):
            verdicts, ticket = getattr(self._store, kind)(name, reports)
        await self._wait(ticket)
        return verdicts

    async def import_batch(self, name: str, batch: "ImportBatch") -> "ImportAnswer":
        """Apply a batch of an import, and wait for its commit."""
        with self._trace("store"):
            answer, ticket = self._store.import_batch(name, batch)
        await self._wait(ticket)
        return answer

    async def put_actions(
        self, name: str, actions: Mapping[str, Any], withdraw: Sequence[str], *, replace: bool
    ) -> "CatalogueInfo":
        """Change a bandit's catalogue in a thread, for that may take long, and wait for the commit."""
        put = partial(self._store.put_actions, name, actions, withdraw, replace=replace)
        info, ticket = await asyncio.to_thread(put)
        await self._wait(ticket)
        return info

    async def catalogue(self, name: str) -> "CatalogueInfo":
        """Describe a bandit's catalogue."""
        return self._store.catalogue(name)

    async def _wait(self, ticket: "Ticket") -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._resolve_when_durable(ticket, [future])
        try:
            with self._trace("commit"):
                await future
        finally:
            self._metrics.waiting -= 1

    def _resolve_when_durable(self, ticket: "Ticket", futures: "list[asyncio.Future[None]]") -> None:
        """Have futures of requests resolved by a commit; the caller takes each off `metrics.waiting` after that.

        Where every request in flight waits for a commit, the commit need not wait for more.
        """
        metrics = self._metrics
        metrics.waiting += len(futures)
        if metrics.waiting >= metrics.in_flight:
            asyncio.get_running_loop().call_soon(self._flush)
        self._store.resolve_when_done(ticket, futures)

    def _flush(self) -> None:
        """Commit now if, after one more turn of the loop, no request has come that could still join."""
        if self._metrics.waiting >= self._metrics.in_flight:
            self._store.flush_now()

    async def stats(self, name: str) -> "BanditStats":
        """Return what a bandit has counted and learned."""
        return self._store.stats(name)

    async def bandit_report(
        self, name: str, since: "datetime | None" = None, until: "datetime | None" = None
    ) -> "BanditReport":
        """Report on a bandit in a thread: it reads the log."""
        return await run_in_daemon_thread(self._store.bandit_report, name, since, until)

    async def explain(self, name: str, decision_id: str) -> "DecisionExplanation":
        """Explain a decision in a thread: it reads the log."""
        return await run_in_daemon_thread(self._store.explain, name, decision_id)

    async def count_replicas(self) -> int | None:
        """Return None: the store is this process's own."""
        return None

    async def create(self, name: str, spec: "BanditSpec") -> "tuple[BanditInfo, bool]":
        """Create a bandit in a thread: it waits for the disk."""
        return await run_in_daemon_thread(self._store.create, name, spec)

    async def delete(self, name: str) -> None:
        """Delete a bandit in a thread."""
        await asyncio.to_thread(self._store.delete, name)


class ReplicatedAccess:
    """A store on a database."""

    def __init__(self, store: "ReplicatedStore", tracing: "Tracing | None" = None) -> None:
        self._store = store
        self._trace = _trace_nothing if tracing is None else tracing.child
        self.find, self.describe = store.find, store.describe
        self.stats, self.create, self.delete, self.catalogue = store.stats, store.create, store.delete, store.catalogue
        self.bandit_report, self.explain, self.count_replicas = (
            store.bandit_report,
            store.explain,
            store.count_replicas,
        )

    def decide_all(self, decisions: Decisions) -> None:
        """Hand decisions to their bandits' queues; the futures get the answers."""
        for pending, decision in decisions:
            try:
                self._store.decide(pending.info.name, future=pending.future, **get_arguments(decision))
            except Exception as error:  # noqa: BLE001 - every error is the answer to its own request
                pending.future.set_exception(error)

    async def decide_batch(self, name: str, requests: Batch) -> list[Outcome]:
        """Make the decisions of a batch."""
        given = [get_arguments(each) if isinstance(each, DecisionCall) else each for each in requests]
        return await decide_shared_batch(self._store, name, given)

    async def import_batch(self, name: str, batch: "ImportBatch") -> "ImportAnswer":
        """Apply a batch of an import."""
        with self._trace("commit"):
            return await self._store.import_batch(name, batch)

    async def put_actions(
        self, name: str, actions: Mapping[str, Any], withdraw: Sequence[str], *, replace: bool
    ) -> "CatalogueInfo":
        """Change a bandit's catalogue."""
        with self._trace("commit"):
            return await self._store.put_actions(name, actions, withdraw, replace=replace)

    async def report(self, kind: ReportKind, name: str, reports: Any) -> "VerdictList":
        """Report conversions, revocations or activations, or freeze a bandit."""
        with self._trace("commit"):
            verdicts: VerdictList = await getattr(self._store, kind)(name, reports)
            return verdicts
