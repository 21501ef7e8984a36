"""The store: every bandit of one log; decisions and conversions are durable before anyone relies on them.

A call that changes something returns at once, with a ticket; `wait` (threads) or `wait_async` (asyncio) returns when
the ticket is on disk; `resolve_when_done` has futures resolved then. An answer must not leave the process before that.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

import numpy.typing as npt

from latecomer.errors import LatecomerError, StoreError
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.call_options import CallOptions
from latecomer.service.bandit.catalogue_call import check_catalogue_call
from latecomer.service.bandit.decision_call import check_decision_call
from latecomer.service.bandit.descriptor import UNFINISHED_PREFIX, check_policy, check_same_spec, resolve_spec
from latecomer.service.bandit.imports import check_import_call
from latecomer.service.bandit.registry import Registry, make_unknown_error
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.durations import parse_retention
from latecomer.service.log_interface import DoneTicket, Log, Ticket
from latecomer.service.messages import (
    BanditInfo,
    CatalogueInfo,
    DecisionAnswer,
    Health,
    ImportAnswer,
    ImportBatch,
)
from latecomer.service.report_calls import Apply, ReportCalls
from latecomer.service.storage.clock import Clocks, StoreClock, SystemClocks
from latecomer.service.storage.limits import Limits
from latecomer.service.storage.listeners import OnCommit, OnDeath, OnTrouble
from latecomer.service.storage.sqlite_log import open_log
from latecomer.service.store_reports import StoreReports
from latecomer.service.store_settings import StoreSettings


class Store(ReportCalls[tuple[VerdictList, Ticket]]):
    """Bandits by name, and the log that keeps them; made by `Store.open`. Threads may share it.

    Parameters
    ----------
    log
        Where events go; `close` closes it.
    registry
        The bandits, in the state that the log leaves them in.
    clock
        The store's time.
    """

    def __init__(self, log: Log, registry: Registry, *, clock: StoreClock) -> None:
        self.log, self.registry, self.clock = log, registry, clock
        self._lock = log.lock
        self._is_closed, self._lost = False, ""
        self.wait, self.wait_async, self.resolve_when_done = log.wait, log.wait_async, log.resolve_when_done
        self.flush_now, self.group = log.flush_now, log.group
        self.describe, self.read_bandit = registry.describe, registry.get
        self.settings = StoreSettings(log, clock, self.check_open)
        self.set_retention = self.settings.set_retention
        reports = StoreReports(log, registry, clock, lambda: self.health)
        self.bandit_report, self.explain = reports.bandit_report, reports.explain
        self.stats, self.measure_all, self.catalogue = reports.stats, reports.measure_all, reports.catalogue
        self.registry_ticket: Ticket = DoneTicket()
        """The ticket of the latest creation or deletion of a bandit."""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Clocks | None = None,
        snapshot_every: int = 100_000,
        retention: str | None = None,
        prune: bool = True,
        create: bool = False,
        limits: Limits = Limits(),  # noqa: B008 - immutable
    ) -> Self:
        """Open a log, created if need be, and recover its bandits.

        Parameters
        ----------
        path
            The SQLite file.
        clock
            The machine's clocks, where they are not this machine's own.
        snapshot_every
            Events between two snapshots of a bandit; more where very many decisions are open.
        retention
            How long after its window a decision stays in the log, as "7d" or "forever"; the file keeps the setting.
            None: as it was set last, "7d" where it never was.
        prune
            Whether rows are deleted once their retention has passed.
        create
            Whether an empty log is created also where there was one before that is missing now.
        limits
            Sizes at which the log's maintenance sets in.
        """
        if retention is not None:
            parse_retention(retention)  # a mistake leaves no file behind
        log, registry, store_clock = open_log(
            path, clock or SystemClocks(), snapshot_every=snapshot_every, prune=prune, create=create, limits=limits
        )
        store = cls(log, registry, clock=store_clock)
        if prune and retention is not None:
            with store._lock:  # also on a full disk, where the settings refuse changes
                log.set_retention(retention)
        return store

    # ---- events ----

    def decide(
        self,
        name: str,
        actions: npt.ArrayLike | None = None,
        ids: Sequence[str] | None = None,
        **options: Unpack[CallOptions],
    ) -> tuple[DecisionAnswer, Ticket]:
        """Choose one of the actions; return the answer, and the ticket to wait for before it leaves.

        `actions`, `ids` and the options are as in `check_decision_call`.
        """
        with self._lock:
            bandit = self.registry.get(name)
            return self.run(bandit, check_decision_call(bandit.dim, actions, ids, **options))

    def import_batch(self, name: str, batch: ImportBatch) -> tuple[ImportAnswer, Ticket]:
        """Apply a batch of decisions that others made; return the answer, and the ticket to wait for."""
        with self._lock:
            bandit = self.registry.get(name)
            return self.run(bandit, check_import_call(bandit.dim, batch))

    def put_actions(
        self, name: str, actions: Mapping[str, Any], withdraw: Sequence[str] = (), *, replace: bool = False
    ) -> tuple[CatalogueInfo, Ticket]:
        """Change the catalogue, as `check_catalogue_call` says; return what it is now, and the ticket to wait for."""
        bandit = self.registry.get(name)
        call = check_catalogue_call(bandit.info, actions, withdraw, replace=replace, size=len(bandit.catalogue))
        with self._lock:
            return self.run(self.registry.get(name), call)

    def run(self, bandit: Bandit, call: Any) -> tuple[Any, Ticket]:
        """Run a call that the log may have answered before, a decision, an import, a change; the lock is held."""
        if call.lookup:
            known = self.log.find_decision(bandit, call.lookup)
            if known is not None:
                return call.repeat(bandit, known[0], shift=self.clock.shift), known[1]
        self.check_open()
        now = self.clock.now()
        try:
            answer, data, count = call.run(bandit, now=now, shift=self.clock.shift)
            return answer, self.log.append(bandit, data, count=count, stamp=now, request=call.request)
        except BaseException as error:
            self.check_unlogged_change(bandit, error)
            raise

    def report(self, name: str, apply: Apply, reports: Any) -> tuple[VerdictList, Ticket]:
        """Report conversions or the like; return the verdicts, and the ticket to wait for. See `ReportCalls`."""
        with self._lock:
            bandit = self.registry.get(name)
            self.check_open()
            now = self.clock.now()
            try:
                verdicts, data = apply(bandit, reports, now=now, shift=self.clock.shift)
                return verdicts, self.log.append(bandit, data, count=len(verdicts), stamp=now)
            except BaseException as error:
                self.check_unlogged_change(bandit, error)
                raise

    def check_unlogged_change(self, bandit: Bandit, error: BaseException) -> None:
        """Refuse everything from now on where a policy was changed by events that the log does not get."""
        if bandit.has_unlogged_change and not isinstance(error, LatecomerError):  # those come before any change
            self._lost = f"a change was made and could not be logged ({error!r}): open the store again"
        bandit.has_unlogged_change = False

    def create(self, name: str, spec: BanditSpec, *, skipped: int | None = None) -> tuple[BanditInfo, bool]:
        """Create a bandit; return its description, and whether it is new. It is durable by then.

        It waits for the disk: call it in a thread. `skipped` is for a bandit that is replayed from another's log: the
        number of rounds that it lacks of that one.
        """
        requested, spec = spec, resolve_spec(spec)
        policy = check_policy(name, requested)
        if name not in self.registry.bandits:
            policy.state.code.warm_up()
        with self._lock:
            self.registry.check_not_quarantined(name)
            bandit = self.registry.bandits.get(name)
            is_new = bandit is None
            if bandit is None:
                self.check_open()
                bandit = self.registry.add(
                    name if skipped is None else UNFINISHED_PREFIX + name,
                    spec,
                    requested=requested,
                    stamp=self.clock.now(),
                    skipped=skipped or 0,
                )
                begun = bytes([events.BEGUN]) + bytes.fromhex(bandit.descriptor.uid)
                self.registry_ticket = self.log.begin_chain(bandit, bandit.descriptor.pack_created(), begun)
            check_same_spec(bandit.descriptor, requested)
            ticket = self.registry_ticket  # an existing bandit may have been created a moment ago
        self.wait(ticket)
        return bandit.info, is_new

    def delete(self, name: str) -> None:
        """Delete a bandit, a quarantined one too, with all its decisions; it is gone for good when this returns.

        `UnknownBanditError` where there is none; an earlier deletion is durable by then.
        """
        with self._lock:
            descriptor = self.registry.find_descriptor(name)
            if descriptor is not None:
                self.check_open()
                self.registry.remove(name)
                deleted = bytes([events.DELETED]) + descriptor.number.to_bytes(4, "little")
                self.registry_ticket = self.log.delete_chain(descriptor.number, deleted, stamp=self.clock.now())
            ticket = self.registry_ticket
        self.wait(ticket)
        if descriptor is None:
            raise make_unknown_error(name)

    def list_bandits(self) -> list[BanditInfo]:
        """Describe every bandit, in the order of their names."""
        with self._lock:
            return self.registry.describe_all()

    @property
    def quarantined(self) -> dict[str, str]:
        """The damage of quarantined bandits, by name."""
        with self._lock:
            return {name: found.reason for name, found in sorted(self.registry.quarantined.items())}

    def info(self, name: str) -> BanditInfo:
        """Describe a bandit that is served."""
        return self.registry.get(name).info

    # ---- the whole ----

    @property
    def health(self) -> Health:
        """The state of the store: why changes are refused, if they are, and totals since it was opened."""
        status = self.log.get_status()
        status = status._replace(failure=self._lost or status.failure)
        return Health(**status._asdict(), clock_offset=self.clock.compute_lead(), quarantined=self.quarantined)

    @property
    def fault(self) -> str | None:
        """The reason why nothing can be written until the store is opened again; None where that is not so."""
        return self._lost or self.log.find_fault()

    def listen(self, *, on_commit: OnCommit, on_trouble: OnTrouble, on_death: OnDeath = lambda: None) -> None:
        """Set callbacks for each commit, for failures that begin or end, and for the end of the writer's thread."""
        self.log.listen(on_commit=on_commit, on_trouble=on_trouble, on_death=on_death)

    def check_open(self) -> None:
        """Raise `StoreError` where changes are refused."""
        failure = "the store is closed: open it again" if self._is_closed else self._lost or self.log.failure
        if failure:
            raise StoreError(failure)

    def close(self) -> None:
        """Commit what is left, take snapshots, and release the file."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if not self._lost:
                self.log.save_all(self.registry.bandits.values(), now=self.clock.now())
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
