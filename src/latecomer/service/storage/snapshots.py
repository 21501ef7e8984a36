"""Snapshots: a bandit's state after some row of its chain, so that a start need not apply the whole log.

The actions of open rounds are not in it: they are in the log, whose rows are kept for their window and grace. The parts
of a snapshot are compressed and written between commits, a part a transaction, and its entry last: without the entry it
does not exist. Each bandit keeps two, so that a damaged one costs time and nothing else.
"""

import hashlib
import struct
import zlib
from typing import Any

import msgspec
from msgspec import Struct

from latecomer.errors import DamagedFileError
from latecomer.policies.persistence.snapshot import PolicySnapshot
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.catalogue import Catalogue
from latecomer.service.bandit.request_id_index import RequestIndex
from latecomer.service.storage.background import Steps
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.rows import MAX_SEQ, key_of, seq_of
from latecomer.service.storage.sql import SQLConnection

KEPT = 2
_PART_SIZE = 1 << 20
_LEVEL = 1
"""zlib's: 10 ms a part, and a quarter of its bytes are left."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything that the next event needs and that the log's open rounds do not have.

    The policy without its open actions; the last round of the index of request ids, which has all requests before it;
    the secrets of decision ids; counters, the tally and the monitor; the stamp of the latest event; the last row that
    compaction has looked at.
    """

    policy: bytes
    indexed_rounds: int
    secrets: list[tuple[int, bytes]]
    counters: dict[str, list[int]]
    stamp: int
    compacted_up_to: int
    tally: dict[str, Any] | None = None
    monitor: dict[str, Any] | None = None
    """None, as is the tally, in a snapshot of an earlier version, which has none."""
    catalogue: bytes = b""
    """Empty where nothing was ever put into it."""
    stages: dict[str, Any] = {}
    challenger: bytes = b""
    """Empty where there is none."""


class SnapshotCopy(Struct, frozen=True, kw_only=True):
    """A copy of a bandit between two rows, to be encoded later by the writer's thread."""

    number: int
    policy: PolicySnapshot
    requests: RequestIndex
    secrets: list[tuple[int, bytes]]
    counters: dict[str, list[int]]
    stamp: int
    compacted_up_to: int
    tally: dict[str, Any]
    monitor: dict[str, Any]
    catalogue: Catalogue
    stages: dict[str, Any]
    challenger: PolicySnapshot | None

    def encode(self) -> bytes:
        """Return the snapshot as bytes; call it once all requests before it are in the index."""
        snapshot = Snapshot(
            policy=self.policy.to_bytes(),
            indexed_rounds=self.requests.indexed,
            secrets=self.secrets,
            counters=self.counters,
            stamp=self.stamp,
            compacted_up_to=self.compacted_up_to,
            tally=self.tally,
            monitor=self.monitor,
            catalogue=self.catalogue.to_bytes() if self.catalogue.version else b"",
            stages=self.stages,
            challenger=b"" if self.challenger is None else self.challenger.to_bytes(),
        )
        return msgspec.msgpack.encode(snapshot)


def copy_for_snapshot(bandit: Bandit, chain: Chain) -> SnapshotCopy:
    """Copy everything of a bandit that the next event may change."""
    bandit.count_notes()
    return SnapshotCopy(
        number=bandit.number,
        policy=PolicySnapshot.capture(bandit.policy),
        requests=chain.requests,
        secrets=bandit.ids.known,
        counters=bandit.counters.to_dict(),
        stamp=bandit.stamp,
        compacted_up_to=chain.compacted_up_to,
        tally=bandit.tally.to_dict(),
        monitor=bandit.monitor.to_dict(),
        catalogue=bandit.catalogue.share(),
        stages=bandit.stages.to_dict(),
        challenger=None if bandit.contest is None else PolicySnapshot.capture(bandit.contest.challenger),
    )


def write_snapshot(connection: SQLConnection, copy: SnapshotCopy, *, seq: int, row_checksum: bytes) -> Steps:
    """Write a snapshot taken after row `seq`, whose checksum is `row_checksum`, a part a step."""
    key, data = key_of(copy.number, seq), memoryview(copy.encode())
    others = [other for other in list_snapshots(connection, copy.number) if other != key]
    yield from discard_snapshots(connection, copy.number, [*others[: 1 - KEPT], key])  # first, to make room
    for part, at in enumerate(range(0, len(data), _PART_SIZE)):
        values = (key, part, zlib.compress(data[at : at + _PART_SIZE], _LEVEL))
        connection.execute("INSERT INTO snapshot_part VALUES (?, ?, ?)", values)
        yield
    entry = (key, copy.policy.kept, row_checksum, _compute_checksum(key, row_checksum, data))
    connection.execute("INSERT INTO snapshot VALUES (?, ?, ?, ?)", entry)
    yield


def list_snapshots(connection: SQLConnection, bandit: int) -> list[int]:
    """Return the keys of a bandit's snapshots, oldest first."""
    query = "SELECT key FROM snapshot WHERE key BETWEEN ? AND ? ORDER BY key"
    return [int(key) for (key,) in connection.execute(query, (key_of(bandit, 0), key_of(bandit, MAX_SEQ)))]


def discard_snapshots(connection: SQLConnection, bandit: int, unwanted: list[int]) -> Steps:
    """Remove snapshots by their keys, and parts that belong to none."""
    for key in unwanted:
        connection.execute("DELETE FROM snapshot WHERE key = ?", (key,))
        yield
    list_snapshots = (key_of(bandit, 0), key_of(bandit, MAX_SEQ))
    query = "SELECT key, part FROM snapshot_part WHERE key BETWEEN ? AND ? AND key NOT IN (SELECT key FROM snapshot)"
    for orphan in list(connection.execute(query, list_snapshots)):
        connection.execute("DELETE FROM snapshot_part WHERE key = ? AND part = ?", orphan)
        yield


def read_snapshot(connection: SQLConnection, key: int) -> tuple[bytes, Snapshot]:
    """Return a snapshot and the checksum of the row that it was taken at; `DamagedFileError` where it is not whole."""
    query = "SELECT row_checksum, checksum FROM snapshot WHERE key = ?"
    try:
        ((row_checksum, checksum),) = connection.execute(query, (key,))
        stored = connection.execute("SELECT data FROM snapshot_part WHERE key = ? ORDER BY part", (key,))
        data = b"".join(_expand(part) for (part,) in stored)
        if _compute_checksum(key, row_checksum, data) != checksum:
            raise ValueError("its checksum does not match")
        return row_checksum, msgspec.msgpack.decode(data, type=Snapshot)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise DamagedFileError(f"the snapshot at row {seq_of(key)} is damaged: {error}") from error


def read_newest_secrets(connection: SQLConnection, bandit: int) -> list[tuple[int, bytes]]:
    """Return the secrets of decision ids as of the newest whole snapshot; later ones are in the rows after it."""
    for key in reversed(list_snapshots(connection, bandit)):
        try:
            return read_snapshot(connection, key)[1].secrets
        except DamagedFileError:
            continue
    return []


def _expand(part: bytes) -> bytes:
    """Return a part as it was before it was compressed; one of an earlier version, or a damaged one, as it is."""
    try:
        return zlib.decompress(part)
    except zlib.error:
        return part  # the checksum of the whole tells the two apart


def _compute_checksum(key: int, row_checksum: bytes, data: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(struct.pack("<q", key) + row_checksum, digest_size=16)
    digest.update(data)
    return digest.digest()
