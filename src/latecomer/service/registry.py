"""The bandits of one file: who is there, made and deleted for good; and the one way into the log."""

from threading import RLock

import apsw

from latecomer.errors import QuarantinedError, StoreError, UnknownBanditError
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import (
    UNFINISHED,
    BanditDescriptor,
    check_policy,
    new_descriptor,
    refuse_another,
    resolve_spec,
    warm_up,
)
from latecomer.service.messages import BanditCounts, BanditInfo, BanditSpec, BanditStats
from latecomer.service.storage.background import Chore, Job
from latecomer.service.storage.clock import StoreClock
from latecomer.service.storage.commit import Commit as Ticket
from latecomer.service.storage.commit import committed
from latecomer.service.storage.maintenance import DAY, LOOSE, Maintenance
from latecomer.service.storage.recovery import Quarantined
from latecomer.service.storage.retention import removing
from latecomer.service.storage.rows import STORE
from latecomer.service.storage.writer import Writer
from latecomer.validation import short_repr

_MANY = 64
"""Rows of one bandit that are worth binding, however many bandits there are."""


class Registry:
    """Bandits by name.

    Parameters
    ----------
    bandits, quarantined, free
        Those of the log, those of them that are damaged, and the next number that none has had.
    clock, lock, writer, keeper
        What tells the time, guards every change, writes it, and takes snapshots.
    """

    def __init__(
        self,
        bandits: dict[str, Bandit],
        quarantined: dict[str, Quarantined],
        free: int,
        *,
        clock: StoreClock,
        lock: RLock,
        writer: Writer,
        keeper: Maintenance,
    ) -> None:
        self._bandits, self._quarantined, self._free = bandits, quarantined, free
        self._clock, self._lock, self._writer, self._maintenance = clock, lock, writer, keeper
        self._closed, self._lost = False, ""
        self.durable, self.wait, self.hurry = writer.durable, writer.wait, writer.hurry
        self.latest = committed()
        """The ticket of the latest change of who is there."""

    def create(self, name: str, spec: BanditSpec, *, skipped: int | None = None) -> tuple[BanditInfo, bool]:
        """Make a bandit; (what it is, whether it is new). Durable when it returns; compiles, so call it in a thread.

        `skipped` is for one that is to be replayed from another's log: how many rounds of that it will lack.
        """
        asked, spec = spec, resolve_spec(spec)
        policy = check_policy(name, asked)
        if name not in self._bandits:
            warm_up(policy)
        with self._lock:
            self._refuse_quarantined(name)
            bandit = self._bandits.get(name)
            is_new = bandit is None
            if bandit is None:
                bandit = self._born(name if skipped is None else UNFINISHED + name, spec, asked, skipped or 0)
            refuse_another(bandit.descriptor, asked)
            ticket = self.latest  # where it is not new, it may yet have been made a moment ago
        self.wait(ticket)
        return bandit.info, is_new

    def _born(self, name: str, spec: BanditSpec, asked: BanditSpec, skipped: int) -> Bandit:
        self._check_open()
        descriptor = new_descriptor(self._free, name, spec, asked=asked, stamp=self._clock.now(), skipped=skipped)
        created = descriptor.event()
        bandit = self._bandits[name] = Bandit(descriptor, descriptor.new_policy())
        bandit.shift = self._clock.shift
        self._free += 1
        self._writer.append(STORE, created, count=1, rounds=0, stamp=descriptor.stamp)
        begun = bytes([events.BEGUN]) + bytes.fromhex(descriptor.epoch)
        self.latest = self._append(bandit, begun, 1, 0)  # an heir's first events are older than itself
        return bandit

    def delete(self, name: str) -> None:
        """Forget a bandit, a quarantined one too, and all its decisions.

        Durable when it returns, or says that there is none.
        """
        with self._lock:
            descriptor = self._descriptor(name)
            if descriptor is not None:
                self._check_open()
                self._bandits.pop(name, None)
                self._quarantined.pop(name, None)
                data = bytes([events.DELETED]) + descriptor.number.to_bytes(4, "little")
                self.latest = self._writer.append(STORE, data, count=1, rounds=0, stamp=self._clock.now())
                self._remove(descriptor.number)
            ticket = self.latest
        self.wait(ticket)
        if descriptor is None:
            raise _unknown(name)

    def _remove(self, number: int) -> None:
        """Have what is left of a deleted bandit removed."""

        def begin(connection: apsw.Connection) -> Chore:
            yield from removing(connection, number)
            self._writer.chores.forget(number)

        self._writer.cut(Job(begin, ("removal", number)))

    def finish(self, name: str) -> None:
        """An heir has all that it was created for, and its name; without that, it is gone after a restart."""
        with self._lock:
            bandit = self._bandits[name] = self._bandits.pop(UNFINISHED + name)
            data = bandit.renamed(name)
            self.latest = ticket = self._writer.append(STORE, data, count=1, rounds=0, stamp=self._clock.now())
        self.wait(ticket)

    def bandits(self) -> list[BanditInfo]:
        """Every bandit, by name."""
        with self._lock:
            return [self.describe(name) for name in sorted({*self._bandits, *self._quarantined})]

    @property
    def quarantined(self) -> dict[str, str]:
        """The damage of bandits that are not served, by name."""
        with self._lock:
            return {name: self._quarantined[name].reason for name in sorted(self._quarantined)}

    def info(self, name: str) -> BanditInfo:
        """What a bandit is."""
        return self._bandit(name).info

    def rounds(self, name: str) -> int:
        """Count the decisions of a bandit."""
        return self._bandit(name).rounds

    def describe(self, name: str) -> BanditInfo:
        """Describe a bandit, a quarantined one too."""
        descriptor = self._descriptor(name)
        if descriptor is None:
            raise _unknown(name)
        return descriptor.info(quarantined=name in self._quarantined)

    def _descriptor(self, name: str) -> BanditDescriptor | None:
        found = self._bandits.get(name) or self._quarantined.get(name)
        return None if found is None else found.descriptor

    def _refuse_quarantined(self, name: str) -> None:
        if name in self._quarantined:
            raise QuarantinedError(
                f"bandit {name!r} is quarantined: {self._quarantined[name].reason}, "
                "or go on as `latecomer log verify` says; other bandits are served"
            )

    def stats(self, name: str) -> BanditStats:
        """What a bandit knows."""
        with self._lock:
            return self._bandit(name).stats()

    def counts(self) -> list[BanditCounts]:
        """What has happened to every bandit."""
        with self._lock:
            return [bandit.counts() for bandit in self._bandits.values()]

    def _bandit(self, name: str) -> Bandit:
        try:
            return self._bandits[name]
        except (KeyError, TypeError):
            if isinstance(name, str):
                self._refuse_quarantined(name)
            raise _unknown(name) from None

    def _append(self, bandit: Bandit, data: bytes, count: int, now: int) -> Ticket:
        ticket = committed()
        if data:
            ticket = self._writer.append(bandit.number, data, count=count, rounds=bandit.rounds, stamp=now)
        bandit.is_moving = False
        bandit.loose += 1
        if bandit.loose >= _MANY and bandit.loose * len(self._bandits) >= LOOSE:
            self._maintenance.bind(bandit)
        if bandit.unsaved >= self._maintenance.every or now - bandit.saved_at > DAY:
            self._maintenance.save(bandit, now)
        if bandit.requests.is_full:
            self._maintenance.index_requests(bandit)
        return ticket

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed: open it again")
        if self._lost or self._writer.failure:
            raise StoreError(self._lost or self._writer.failure or "")


def _unknown(name: object) -> UnknownBanditError:
    return UnknownBanditError(f"there is no bandit {short_repr(name)}: create it first")
