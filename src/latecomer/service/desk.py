"""The desk: every bandit of one file, each decision and conversion in its log before anyone relies on it.

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
import msgspec
import numpy.typing as npt

from latecomer.errors import DamagedFileError, LatecomerError, NoRoomError, StoreError
from latecomer.service import events
from latecomer.service.bandit import Bandit
from latecomer.service.births import warm_up
from latecomer.service.chores import Work
from latecomer.service.clock import DeskClock, Machine, ThisMachine
from latecomer.service.files import Closing, clock_of, made_once, recalled_retention, remember_clock, remembering
from latecomer.service.folding import moved_by
from latecomer.service.keeping import Keeper
from latecomer.service.log import DESK, connect, connect_unchanging, unreadable
from latecomer.service.messages import Answer, Conversion, Health, Revocation
from latecomer.service.owner import Owner
from latecomer.service.pruning import strangers
from latecomer.service.recovery import births, recover
from latecomer.service.request_segments import remove_all
from latecomer.service.requests import answered, asked_actions, body_digest, checked_ids, request_digest
from latecomer.service.roster import Roster
from latecomer.service.spans import FOREVER, retention_of
from latecomer.service.verdicts import Verdicts
from latecomer.service.writer import Batch as Ticket
from latecomer.service.writer import Heads, OnCommit, OnTrouble, Writer


class Desk(Roster, Closing):
    """Opened by `Desk.open`; one owner at a time; safe to call from several threads."""

    def __init__(
        self,
        path: Path,
        owner: Owner,
        *,
        clock: Machine,
        every: int,
        prune: bool,
    ) -> None:
        connection, reader, full = _connections(path)
        heads: Heads = {}
        found, free = births(connection, heads)
        bandits, quarantined = recover(connection, found.values(), heads)
        desk_clock = clock_of(connection, clock, max((bandit.stamp for bandit in bandits.values()), default=0))
        lock = RLock()
        self._path, self._connection, self.reader, self._owner = path, connection, reader, owner
        self._lock, self._clock = lock, desk_clock  # the writer may need them at once
        kept, deleted = recalled_retention(connection), strangers(reader, set(found))
        failure = full or _kept_clock(connection, desk_clock)
        writer = Writer(connection, lock, heads, prepare=self._prepare if failure else None, failure=failure)
        keeper = Keeper(writer, every=every, retention=retention_of(kept) if prune else None)
        super().__init__(bandits, quarantined, free, clock=desk_clock, lock=lock, writer=writer, keeper=keeper)
        for bandit in bandits.values():
            bandit.saved_at, bandit.shift = desk_clock.now(), desk_clock.shift
            warm_up(bandit.learner)
        for number in deleted:
            self._remove(number)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Machine | None = None,
        snapshot_every: int = 100_000,
        retention: str | None = None,
        prune: bool = True,
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
        """
        if retention is not None:
            retention_of(retention)  # a mistake leaves no file behind
        owner = Owner(real := Path(os.path.realpath(path)))
        try:
            made_once(real, owner)
            desk = cls(real, owner, clock=clock or ThisMachine(), every=snapshot_every, prune=prune)
        except (apsw.Error, UnicodeDecodeError, TypeError) as error:  # the latter where a damaged row has odd columns
            owner.release()
            raise unreadable(real, error) from error
        except BaseException:
            owner.release()
            raise
        if prune and retention is not None:
            desk._keep(retention)
        return desk

    def _prepare(self) -> apsw.Connection:
        """Connect as an owner should, once there is room for it; in the writer's thread."""
        if self._connection is self.reader:
            connection, reader, failure = _connections(self._path)
            if failure is not None:
                reader.close()
                raise failure
            with self._lock:
                self.reader.close()
                self._connection, self.reader = connection, reader
        remember_clock(self._connection, self._clock)
        return self._connection

    # ---- events ----

    def decide(
        self,
        name: str,
        actions: npt.ArrayLike,
        ids: Sequence[str] | None = None,
        *,
        request_id: str | None = None,
        body: bytes | None = None,
    ) -> tuple[Answer, Ticket]:
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

    def _known_answer(self, bandit: Bandit, digests: bytes, request_id: str) -> tuple[Answer, Ticket] | None:
        try:
            return answered(self.reader, bandit, digests, request_id)
        except DamagedFileError as error:  # without the index, the next opening makes it anew
            drop = partial(remove_all, bandit=bandit.number)
            self._writer.cut(Work(drop, ("request index", bandit.number)))
            raise StoreError(str(error)) from error

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
        """Move a bandit by a row of another one's log, and write it as its own; see `latecomer.service.replay`."""
        with self._lock:
            bandit = self._bandit(name)
            self._check_open()
            return self._append(bandit, moved_by(bandit, payload, stamp), count, stamp)

    # ---- the whole ----

    @property
    def health(self) -> Health:
        """How it is: whether changes are taken, and what has been committed since it was opened."""
        health = self._writer.health(lost=self._lost, clock_offset=self._clock.ahead())
        return msgspec.structs.replace(health, quarantined=self.quarantined)

    @property
    def retention(self) -> str:
        """How long decisions stay in the log after their window."""
        keep = self._keeper.retention
        return FOREVER if keep is None else f"{keep // 1_000_000}s"

    def keep(self, retention: str) -> None:
        """How long decisions stay in the log after their window, from now on ("7d", "forever"); the file remembers."""
        retention_of(retention)
        with self._lock:
            self._check_open()
            self._keep(retention)

    def _keep(self, retention: str) -> None:
        with self._lock:
            self._keeper.retention = retention_of(retention)
            self._writer.cut(Work(lambda connection: remembering(connection, retention=retention), ("retention", DESK)))

    def adjust_clock(self) -> float:
        """Take the machine's clock for right from now on; return by how many seconds the desk's time was ahead of it.

        The desk's time goes on as it was, so that windows stay what they are; what is said of the calendar changes.
        """
        with self._lock:
            self._check_open()
            ahead = self._clock.adjust()
            for bandit in self._bandits.values():
                bandit.shift = self._clock.shift
            shift = str(self._clock.shift)
            self._writer.cut(Work(lambda connection: remembering(connection, shift=shift), ("clock", DESK)))
        return ahead

    def listen(self, *, on_commit: OnCommit, on_trouble: OnTrouble) -> None:
        """Be told by the writer's thread: of each commit, and when commits begin to fail, and work again."""
        self._writer.on_commit, self._writer.on_trouble = on_commit, on_trouble

    def close(self) -> None:
        """Write what is left, take snapshots, and let the file go."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for bandit in self._bandits.values():
                if bandit.unsaved and not (self._lost or self._writer.failure):
                    self._keeper.save(bandit, self._clock.now(), last=True)
        self._writer.stop()
        self.reader.close()
        self._connection.close()
        self._owner.release()


def _connections(path: Path) -> tuple[apsw.Connection, apsw.Connection, NoRoomError | None]:
    """One to write with and one to read with; on a full disk one and the same, which cannot write, and why."""
    try:
        return connect(path, write=True), connect(path, write=False), None
    except NoRoomError as error:
        connection = connect_unchanging(path)
        return connection, connection, error


def _kept_clock(connection: apsw.Connection, clock: DeskClock) -> Exception | None:
    """Remember the time before anything is stamped with it; why not, on a full disk."""
    try:
        remember_clock(connection, clock)
    except (apsw.FullError, apsw.IOError) as error:
        return error
    return None
