"""Snapshots: a bandit as it was after some row of its chain, so that a restart need not fold the whole log.

The actions of open rounds are not in it: they are in the log, whose rows are never pruned before their window closes. A
snapshot's parts are written between commits, a part a transaction, and its entry last: a snapshot without an entry does
not exist. Each bandit keeps two, so that a damaged one costs time and nothing else.
"""

import hashlib
import struct
from collections.abc import Iterator

import apsw
import msgspec
from msgspec import Struct

from latecomer.errors import DamagedFileError
from latecomer.policies.persistence.snapshot import PolicySnapshot
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.request_index import RequestIndex
from latecomer.service.storage.rows import LAST, key_of, seq_of

KEPT = 2
_PART = 1 << 20


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything that the next event needs and the log's open rounds do not tell.

    The policy without its open actions, the secrets of decision ids, counters, the stamp of the latest event, up to
    which row small ones have been bound, and the last round of the index of request ids: it has all requests before.
    """

    policy: bytes
    indexed: int
    secrets: list[tuple[int, bytes]]
    counters: dict[str, list[int]]
    stamp: int
    bound: int


class SnapshotCopy(Struct, frozen=True, kw_only=True):
    """A bandit at one moment, to be encoded at leisure."""

    number: int
    policy: PolicySnapshot
    requests: RequestIndex
    secrets: list[tuple[int, bytes]]
    counters: dict[str, list[int]]
    stamp: int
    bound: int

    def encoded(self) -> bytes:
        """The snapshot, once all requests before it are in the index."""
        snapshot = Snapshot(
            policy=self.policy.to_bytes(),
            indexed=self.requests.indexed,
            secrets=self.secrets,
            counters=self.counters,
            stamp=self.stamp,
            bound=self.bound,
        )
        return msgspec.msgpack.encode(snapshot)


def copy_for_snapshot(bandit: Bandit) -> SnapshotCopy:
    """A copy of what moves."""
    return SnapshotCopy(
        number=bandit.number,
        policy=PolicySnapshot.capture(bandit.policy),
        requests=bandit.requests,
        secrets=bandit.ids.known,
        counters=bandit.counters.plain(),
        stamp=bandit.stamp,
        bound=bandit.bound,
    )


def writing(connection: apsw.Connection, frozen: SnapshotCopy, *, seq: int, anchor: bytes) -> Iterator[None]:
    """Write a snapshot as of row `seq`, whose checksum is `anchor`, a part at a time."""
    key, data = key_of(frozen.number, seq), memoryview(frozen.encoded())
    others = [other for other in keys(connection, frozen.number) if other != key]
    yield from discarding(connection, frozen.number, [*others[: 1 - KEPT], key])  # first, for their room is needed
    for part, at in enumerate(range(0, len(data), _PART)):
        connection.execute("INSERT INTO part VALUES (?, ?, ?)", (key, part, bytes(data[at : at + _PART])))
        yield
    entry = (key, frozen.policy.oldest, anchor, _checksum(key, anchor, data))
    connection.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", entry)
    yield


def keys(connection: apsw.Connection, bandit: int) -> list[int]:
    """The snapshots of a bandit, oldest first."""
    query = "SELECT key FROM snapshot WHERE key BETWEEN ? AND ? ORDER BY key"
    return [int(key) for (key,) in connection.execute(query, (key_of(bandit, 0), key_of(bandit, LAST)))]


def discarding(connection: apsw.Connection, bandit: int, unwanted: list[int]) -> Iterator[None]:
    """Remove snapshots, and parts that belong to none."""
    for key in unwanted:
        connection.execute("DELETE FROM snapshot WHERE key = ?", (key,))
        yield
    span = (key_of(bandit, 0), key_of(bandit, LAST))
    orphans = "SELECT key, part FROM part WHERE key BETWEEN ? AND ? AND key NOT IN (SELECT key FROM snapshot)"
    for orphan in list(connection.execute(orphans, span)):
        connection.execute("DELETE FROM part WHERE key = ? AND part = ?", orphan)
        yield


def read(connection: apsw.Connection, key: int) -> tuple[bytes, Snapshot]:
    """A snapshot, and the checksum of the row that it stands on; `DamagedFileError` where it is not whole."""
    name = f"the snapshot at row {seq_of(key)}"
    query = "SELECT anchor, checksum FROM snapshot WHERE key = ?"
    try:
        ((anchor, checksum),) = connection.execute(query, (key,))
        stored = connection.execute("SELECT data FROM part WHERE key = ? ORDER BY part", (key,))
        data = b"".join(part for (part,) in stored)
        if _checksum(key, anchor, data) != checksum:
            raise ValueError("its checksum does not match")
        return anchor, msgspec.msgpack.decode(data, type=Snapshot)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise DamagedFileError(f"{name} is damaged: {error}") from error


def newest_secrets(connection: apsw.Connection, bandit: int) -> list[tuple[int, bytes]]:
    """The secrets of decision ids as of the newest snapshot that is whole; the rows of the log tell of later ones."""
    for key in reversed(keys(connection, bandit)):
        try:
            return read(connection, key)[1].secrets
        except DamagedFileError:
            continue
    return []


def _checksum(key: int, anchor: bytes, data: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(struct.pack("<q", key) + anchor, digest_size=16)
    digest.update(data)
    return digest.digest()
