"""The store's own chain on PostgreSQL: which bandits exist, as of some row of it, and how that is changed."""

from collections.abc import Sequence
from typing import Any

import msgspec
from psycopg import AsyncConnection

from latecomer.errors import DamagedFileError
from latecomer.service.bandit import events
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.storage.postgres.messages import roll_back, run
from latecomer.service.storage.postgres.pool import ConnectionPool
from latecomer.service.storage.postgres.statements import (
    TAIL,
    Locked,
    begin_head,
    end_head,
    insert_row,
    lock_chain,
    move_head,
    read_tail,
)
from latecomer.service.storage.recovery import apply_registry_row
from latecomer.service.storage.rows import GENESIS, STORE_CHAIN, Row, check_chain, make_row, make_row_error


class RegistryChain:
    """The bandits that exist, by number; only one event loop uses it."""

    def __init__(self) -> None:
        self.descriptors: dict[int, BanditDescriptor] = {}
        self._seq, self._link = 0, GENESIS
        self._next_number = 1

    @property
    def seq(self) -> int:
        """The last commit that has been applied."""
        return self._seq

    def find(self, name: str) -> BanditDescriptor | None:
        """Return the descriptor of a bandit."""
        return next((found for found in self.descriptors.values() if found.name == name), None)

    async def follow(self, pool: ConnectionPool) -> None:
        """Apply what has been committed."""
        is_last = False
        while not is_last:
            async with pool.take() as connection:
                tail = await read_tail(connection, STORE_CHAIN, after=self._seq)
            try:
                self._apply(tail)
            except DamagedFileError:
                if not self._seq:
                    raise
                self._forget()  # another history: from its beginning
                continue
            is_last = len(tail) < TAIL

    async def lock(self, connection: AsyncConnection[Any]) -> Locked | None:
        """Lock the chain and apply the rest of it; None where there was too much to be done under the lock."""
        locked = await lock_chain(connection, STORE_CHAIN, after=self._seq)
        if len(locked.tail) == TAIL:
            await roll_back(connection)
            return None
        self._apply(locked.tail)
        if locked.head is None or (locked.head.seq, locked.head.checksum) != (self._seq, self._link):
            await roll_back(connection)  # the database has lost rows that this replica knows, as after a restore
            self._forget()
            return None
        return locked

    def _forget(self) -> None:
        """Begin anew: the next look reads the whole chain."""
        self.descriptors, self._seq, self._link = {}, 0, GENESIS

    def _apply(self, tail: Sequence[Row]) -> None:
        unseen = [row for row in tail if row.seq > self._seq]  # two calls may have read the same rows
        for row in check_chain(unseen, STORE_CHAIN, after=self._seq, parent=self._link):
            try:
                largest = apply_registry_row(self.descriptors, row)
            except (ValueError, KeyError, msgspec.MsgspecError) as error:
                raise make_row_error(STORE_CHAIN, row.seq, str(error)) from error
            self._next_number = max(self._next_number, largest + 1)
            self._seq, self._link = row.seq, row.link

    # ---- changes, with the chain locked; they are applied when they are read ----

    @property
    def next_number(self) -> int:
        """The number of the next bandit."""
        return self._next_number

    async def commit_creation(self, connection: AsyncConnection[Any], descriptor: BanditDescriptor) -> Row:
        """Record a creation, begin the bandit's chain, and commit; return its first row."""
        begun = make_begun_row(descriptor)
        created = self._append(descriptor.pack_created(), descriptor.stamp)
        await run(connection, [*created, insert_row(begun), begin_head(begun), "COMMIT"])
        return begun

    async def commit_deletion(self, connection: AsyncConnection[Any], number: int, stamp: int) -> None:
        """Record a deletion, end the bandit's chain, and commit. It waits for the replica that holds the chain."""
        deleted = bytes([events.DELETED]) + number.to_bytes(4, "little")
        await run(connection, [end_head(number), *self._append(deleted, stamp), "COMMIT"])

    def _append(self, payload: bytes, stamp: int) -> list[str]:
        """Return the statements that append an event."""
        row = make_row(STORE_CHAIN, self._seq + 1, count=1, rounds=0, stamp=stamp, parent=self._link, payload=payload)
        return [insert_row(row), move_head(row, unsaved=0)]


def make_begun_row(descriptor: BanditDescriptor) -> Row:
    """Return the first row of a bandit's chain."""
    begun = bytes([events.BEGUN]) + bytes.fromhex(descriptor.uid)
    # A replayed bandit's first events are older than the bandit: its chain begins with stamp 0.
    return make_row(descriptor.number, 1, count=1, rounds=0, stamp=0, parent=GENESIS, payload=begun)
