"""A replay in a store on PostgreSQL, while its replicas go on: as of one moment of the old bandit's log."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Self

import msgspec

from latecomer.errors import InputError, StoreError
from latecomer.service.bandit import events
from latecomer.service.bandit.apply import apply_foreign_payload
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import (
    UNFINISHED_PREFIX,
    BanditDescriptor,
    check_policy,
    make_descriptor,
    resolve_spec,
)
from latecomer.service.bandit.registry import make_unknown_error
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import BanditStats
from latecomer.service.storage.pending_commit import Heads
from latecomer.service.storage.postgres.connection import MAINTENANCE_SECONDS, PostgresConnection
from latecomer.service.storage.postgres.registry_chain import make_begun_row
from latecomer.service.storage.postgres.schema import check_version
from latecomer.service.storage.recovery import apply_registry_row, read_descriptors
from latecomer.service.storage.rows import (
    GENESIS,
    STORE_CHAIN,
    Row,
    insert_row,
    make_row,
    read_remaining_rows,
    read_rows,
)
from latecomer.service.storage.snapshots import read_newest_secrets


class SharedReplay:
    """A replay: one connection reads the old bandit as of one moment, another writes the new one.

    Parameters
    ----------
    address
        The database.
    renewal
        Seconds after which the database is told that the replay goes on.
    """

    def __init__(self, address: str, *, renewal: float = 3600.0) -> None:
        self._address, self._renewal = address, renewal
        self._exits = ExitStack()
        self._bandit: Bandit
        self._head: Row

    def __enter__(self) -> Self:
        """Connect."""
        self._reading = PostgresConnection(self._address, read_only=True)
        self._exits.callback(self._reading.close)
        self._writing = PostgresConnection(self._address, hold=MAINTENANCE_SECONDS)  # it locks the store's chain
        self._exits.callback(self._writing.close)
        check_version(self._reading, self._address)
        self._exits.enter_context(self._reading)
        return self

    def __exit__(self, *error: Any) -> None:
        """Disconnect."""
        self._exits.__exit__(*error)

    # ---- the old bandit ----

    def find_descriptor(self, name: str, *, partial: bool) -> BanditDescriptor:  # noqa: ARG002
        """Return a bandit's descriptor; its damage is found when its rows are read."""
        for descriptor in read_descriptors(self._reading, {})[0].values():
            if descriptor.name == name:
                return descriptor
        raise make_unknown_error(name)

    def is_taken(self, name: str) -> bool:
        """Tell whether a bandit has the name."""
        return any(found.name == name for found in read_descriptors(self._writing, {})[0].values())

    def read_rows(self, number: int) -> Iterator[Row]:
        """Yield a bandit's rows, from the first that has not been pruned."""
        return read_remaining_rows(self._reading, number)

    def read_secrets(self, number: int) -> list[tuple[int, bytes]]:
        """Return the secrets of decision ids as of the newest snapshot."""
        return read_newest_secrets(self._reading, number)

    # ---- the new bandit ----

    def create(self, name: str, spec: BanditSpec, *, skipped: int) -> None:
        """Create the new bandit, under a name that no caller can use; one that is never finished is removed later."""
        check_policy(name, spec)
        with self._writing:
            heads, free = self._lock_registry()
            descriptor = make_descriptor(
                free,
                UNFINISHED_PREFIX + name,
                resolve_spec(spec),
                requested=spec,
                stamp=self._writing.read_time(),
                skipped=skipped,
            )
            self._append_registry(heads, descriptor)
            self._head = make_begun_row(descriptor)
            insert_row(self._writing, self._head)
            self._writing.insert_many("head", [(descriptor.number, 1, self._head.link, 0, 0)])
        self._bandit = Bandit(descriptor, descriptor.make_policy())
        self._renewed_at = time.monotonic()

    def append(self, payload: bytes, *, count: int, stamp: int) -> None:
        """Apply a row of the old log to the new bandit, and log it as the new one's own."""
        bandit, before = self._bandit, self._head
        applied = apply_foreign_payload(bandit, payload, stamp)
        row = make_row(
            bandit.number,
            before.seq + 1,
            count=count,
            rounds=bandit.rounds,
            stamp=stamp,
            parent=before.link,
            payload=applied.to_bytes(),
        )
        decided = applied.records(events.DECISION_WITH_REQUEST)
        pairs = zip(decided["request"].tolist(), decided["round"].tolist(), strict=True)
        requests = [(bandit.number, digest, row.seq, round_) for digest, round_ in pairs]
        with self._writing:
            insert_row(self._writing, row)
            if requests:
                self._writing.insert_many("request", requests)
            values = (row.seq, row.link, row.stamp, row.count, bandit.number)
            moved = "UPDATE head SET seq = ?, checksum = ?, stamp = ?, unsaved = unsaved + ? WHERE bandit = ?"
            self._check_there(self._writing.execute(f"{moved} RETURNING bandit", values))
        self._head = row
        if time.monotonic() - self._renewed_at > self._renewal:
            self._renew()

    def _check_there(self, heads: Iterable[Any]) -> None:
        """Raise `StoreError` where the head of the new bandit's chain was not found."""
        if not list(heads):
            raise StoreError(
                f"the replay into {self._name!r} was removed, since nothing was heard of it for a day: begin it again"
            )

    @property
    def _name(self) -> str:
        return self._bandit.descriptor.name.removeprefix(UNFINISHED_PREFIX)

    def _renew(self) -> None:
        """Record that the replay goes on: a replica removes what has been left unfinished for a day."""
        with self._writing:
            heads, _ = self._lock_registry()
            renewed = msgspec.structs.replace(self._bandit.descriptor, stamp=self._writing.read_time())
            self._append_registry(heads, renewed)  # `finish` records the stamp of the beginning again
        self._renewed_at = time.monotonic()

    def finish(self) -> BanditStats:
        """Give the new bandit its name: from now on it is served."""
        name = self._name
        with self._writing:
            heads, _ = self._lock_registry()
            query = "SELECT seq FROM head WHERE bandit = ?"
            self._check_there(self._writing.execute(query, (self._bandit.number,)))
            if self.is_taken(name):
                raise InputError(f"the new bandit needs a name of its own; {name!r} was taken meanwhile")
            self._bandit.rename(name)
            self._append_registry(heads, self._bandit.descriptor)
        return self._bandit.stats()

    def _lock_registry(self) -> tuple[Heads, int]:
        """Lock the store's own chain; return its head, and the next free number of a bandit."""
        lock = "SELECT seq FROM head WHERE bandit = ? FOR UPDATE"
        if not list(self._writing.execute(lock, (STORE_CHAIN,))):
            raise StoreError("the store has no head for its own chain: restore it from a copy")
        heads: Heads = {STORE_CHAIN: (0, GENESIS)}
        alive: dict[int, BanditDescriptor] = {}
        free = 1
        for row in read_rows(self._writing, STORE_CHAIN, after=0, parent=GENESIS):
            free = max(free, apply_registry_row(alive, row) + 1)
            heads[STORE_CHAIN] = (row.seq, row.link)
        return heads, free

    def _append_registry(self, heads: Heads, descriptor: BanditDescriptor) -> None:
        seq, parent = heads[STORE_CHAIN]
        stamp, payload = self._writing.read_time(), descriptor.pack_created()
        row = make_row(STORE_CHAIN, seq + 1, count=1, rounds=0, stamp=stamp, parent=parent, payload=payload)
        insert_row(self._writing, row)
        values = (row.seq, row.link, row.stamp, STORE_CHAIN)
        self._writing.execute("UPDATE head SET seq = ?, checksum = ?, stamp = ? WHERE bandit = ?", values)
