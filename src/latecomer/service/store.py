"""The store: every bandit of one file, each decision and conversion in its log before anyone relies on it.

Calls that change something answer at once, with a ticket; `durable` (asyncio) or `wait` (threads) returns when the
ticket is on disk. An answer must not leave before that.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Self

import apsw
import numpy.typing as npt

from latecomer.errors import DamagedFileError, LatecomerError, StoreError
from latecomer.service.bandit import events
from latecomer.service.bandit.apply import moved_by
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import warm_up
from latecomer.service.bandit.verdicts import Verdicts
from latecomer.service.durations import retention_of
from latecomer.service.idempotency import answered, asked_actions, body_digest, checked_ids, request_digest
from latecomer.service.messages import Conversion, DecisionAnswer, Health, Revocation
from latecomer.service.storage.background import Job
from latecomer.service.storage.clock import Clocks, SystemClocks
from latecomer.service.storage.commit import Commit as Ticket
from latecomer.service.storage.connections import Connections
from latecomer.service.storage.listeners import OnCommit, OnDeath, OnTrouble
from latecomer.service.storage.lock import StoreLock
from latecomer.service.storage.maintenance import Maintenance
from latecomer.service.storage.recovery import read_descriptors, recover
from latecomer.service.storage.remembered import Remembered
from latecomer.service.storage.request_segments import remove_all
from latecomer.service.storage.retention import strangers
from latecomer.service.storage.rows import unreadable
from latecomer.service.storage.settings_table import (
    Closing,
    clock_of,
    make_once,
    recalled_retention,
)
from latecomer.service.storage.writer import Heads, Writer


class Store(Remembered, Closing):
    """Opened by `Store.open`; one owner at a time; safe to call from several threads."""

    def __init__(
        self,
        path: Path,
        owner: StoreLock,
        *,
        clock: Clocks,
        every: int,
        prune: bool,
    ) -> None:
        self._connections = connections = Connections(path, owner)
        heads: Heads = {}
        found, free = read_descriptors(connections.writing, heads)
        bandits, quarantined = recover(connections.writing, found.values(), heads)
        latest = max((bandit.stamp for bandit in bandits.values()), default=0)
        store_clock, lock = clock_of(connections.writing, clock, latest), RLock()
        kept, deleted = recalled_retention(connections.writing), strangers(connections.reading, set(found))
        connections.keep_clock(store_clock)
        writer = Writer(
            connections.writing,
            lock,
            heads,
            prepare=partial(connections.reconnect, store_clock, lock) if connections.failure else None,
            failure=connections.failure,
            check=connections.check,
        )
        keeper = Maintenance(writer, every=every, retention=retention_of(kept) if prune else None)
        super().__init__(bandits, quarantined, free, clock=store_clock, lock=lock, writer=writer, keeper=keeper)
        for bandit in bandits.values():
            bandit.saved_at, bandit.shift = store_clock.now(), store_clock.shift
            warm_up(bandit.policy)
        for number in deleted:
            self._remove(number)

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
    ) -> Self:
        """Open a log, made if need be, and recover what it holds.

        Parameters
        ----------
        path
            The SQLite file.
        clock
            What tells the time; this machine without it.
        snapshot_every
            Events between two snapshots of a bandit; more where very many decisions are open.
        retention
            How long after its window a decision stays in the log, as "7d" or "forever"; the file remembers it. None:
            as it was told last, "7d" where it was told nothing.
        prune
            Whether what may go does, as snapshots are taken.
        create
            Whether an empty log is made also where there was one before that is missing now.
        """
        if retention is not None:
            retention_of(retention)  # a mistake leaves no file behind
        owner = StoreLock(real := Path(os.path.realpath(path)))
        try:
            make_once(real, create=create)
            store = cls(real, owner, clock=clock or SystemClocks(), every=snapshot_every, prune=prune)
            owner.note_made()
        except (apsw.Error, UnicodeDecodeError, TypeError) as error:  # the latter where a damaged row has odd columns
            owner.release()
            raise unreadable(real, error) from error
        except BaseException:
            owner.release()
            raise
        if prune and retention is not None:
            store._keep(retention)
        return store

    # ---- events ----

    def decide(
        self,
        name: str,
        actions: npt.ArrayLike,
        ids: Sequence[str] | None = None,
        *,
        request_id: str | None = None,
        body: bytes | None = None,
    ) -> tuple[DecisionAnswer, Ticket]:
        """Choose one of the actions: the answer, and the ticket to wait for before it leaves.

        Parameters
        ----------
        name
            The bandit.
        actions
            A (K, d) array-like, finite, of norms at most 1.
        ids
            A text for each action; the chosen one's is in the answer.
        request_id
            The same id and body get the same answer, as long as the log keeps it.
        body
            At least 8 bytes that stand for the body; computed from actions and ids without it.
        """
        with self._lock:
            bandit = self._bandit(name)
            array = asked_actions(actions, bandit.dim)
            if ids is not None:
                checked_ids(ids, len(array))
            digests = b""
            if request_id is not None:
                digests = request_digest(request_id) + (body or body_digest(array, ids))[: events.BODY]
                known = self._known_answer(bandit, digests, request_id)
                if known is not None:
                    return known
            self._check_open()
            now = self._clock.now()
            try:
                answer, data = bandit.decide(array, ids, now=now, digests=digests)
                ticket = self._append(bandit, data, 1, now)
            except BaseException as error:
                self._check_moved(bandit, error)
                raise
            if digests:
                request = digests[: events.DIGEST]
                bandit.recent[request] = (answer, digests[events.DIGEST :], ticket)
                ticket.asked.append((bandit.recent, request))
            return answer, ticket

    def _known_answer(self, bandit: Bandit, digests: bytes, request_id: str) -> tuple[DecisionAnswer, Ticket] | None:
        try:
            return answered(self.reader, bandit, digests, request_id)
        except DamagedFileError as error:  # without the index, the next opening makes it anew
            drop = partial(remove_all, bandit=bandit.number)
            self._writer.cut(Job(drop, ("request index", bandit.number)))
            raise StoreError(str(error)) from error
        except apsw.Error as error:  # a page that SQLite cannot read
            raise StoreError(str(unreadable("the log", error))) from error

    def convert(self, name: str, conversions: Sequence[Conversion]) -> tuple[Verdicts, Ticket]:
        """Report conversions: a verdict for each, and the ticket to wait for before they leave."""
        return self._report(name, Bandit.convert, conversions)

    def revoke(self, name: str, revocations: Sequence[Revocation]) -> tuple[Verdicts, Ticket]:
        """Take conversions back: a verdict for each, and the ticket to wait for before they leave."""
        return self._report(name, Bandit.revoke, revocations)

    def _report(
        self, name: str, told: Callable[..., tuple[Verdicts, bytes]], reports: object
    ) -> tuple[Verdicts, Ticket]:
        with self._lock:
            bandit = self._bandit(name)
            self._check_open()
            now = self._clock.now()
            try:
                verdicts, data = told(bandit, reports, now)
                return verdicts, self._append(bandit, data, len(verdicts), now)
            except BaseException as error:
                self._check_moved(bandit, error)
                raise

    def _check_moved(self, bandit: Bandit, error: BaseException) -> None:
        """A policy that was moved by what the log does not have must not be asked again, nor saved."""
        if bandit.is_moving and not isinstance(error, LatecomerError):  # those refuse before anything moves
            self._lost = f"a change was made and could not be logged ({error!r}): open the store again"
        bandit.is_moving = False

    def adopt(self, name: str, payload: bytes, *, count: int, stamp: int) -> Ticket:
        """Move a bandit by a row of another one's log, and write it as its own; see `tools.replay`."""
        with self._lock:
            bandit = self._bandit(name)
            self._check_open()
            return self._append(bandit, moved_by(bandit, payload, stamp), count, stamp)

    # ---- the whole ----

    @property
    def health(self) -> Health:
        """How it is: whether changes are taken, and what has been committed since it was opened."""
        writer = self._writer
        return Health(
            failure=self._lost or writer.failure or writer.find_fault(),
            snapshot_failure=writer.chores.failure,
            commits=writer.commits,
            events=writer.events,
            bytes=writer.bytes,
            commit_seconds=writer.seconds,
            clock_offset=self._clock.ahead(),
            quarantined=self.quarantined,
        )

    @property
    def fault(self) -> str | None:
        """Why nothing more can be written until the store is opened again, where that is so."""
        return self._lost or self._writer.find_fault()

    def listen(self, *, on_commit: OnCommit, on_trouble: OnTrouble, on_death: OnDeath = lambda: None) -> None:
        """Be told by the writer's thread: of each commit, when commits begin to fail and work again, and of its end."""
        listeners = self._writer.listeners
        listeners.on_commit, listeners.on_trouble, listeners.on_death = on_commit, on_trouble, on_death

    def close(self) -> None:
        """Write what is left, take snapshots, and let the file go."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for bandit in self._bandits.values():
                if bandit.unsaved and not (self._lost or self._writer.failure):
                    self._maintenance.save(bandit, self._clock.now(), last=True)
        self._writer.stop()
        self._connections.close()
