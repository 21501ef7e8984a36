"""Snapshots: a bandit as it was after some row of its chain, so that a restart need not fold the whole log.

A snapshot's parts are written between commits, a part a transaction, and its entry last: a snapshot without an entry
does not exist. Each bandit keeps two, so that a damaged one costs time and nothing else.
"""

import hashlib
import struct
from collections.abc import Iterator

import apsw
import msgspec
import numpy as np
from msgspec import Struct

from latecomer.errors import DamagedFileError
from latecomer.policies.catalogue import from_bytes
from latecomer.policies.learner import Learner
from latecomer.policies.recorded import twin
from latecomer.service.bandit import Bandit
from latecomer.service.births import Birth
from latecomer.service.log import key_of, seq_of

KEPT = 2
_PART = 1 << 20
_LAST = 2**40 - 1


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything that the next event needs: the policy's file, requests by their digests, and counters."""

    policy: bytes
    digests: bytes
    rounds: bytes
    counters: dict[str, list[int]]
    stamp: int


class Frozen(Struct, frozen=True, kw_only=True):
    """A bandit at one moment, to be encoded at leisure."""

    number: int
    learner: Learner
    requests: dict[bytes, int]
    counters: dict[str, list[int]]
    stamp: int

    def encoded(self) -> bytes:
        """As the file holds it."""
        snapshot = Snapshot(
            policy=self.learner.to_bytes(),
            digests=b"".join(self.requests),
            rounds=np.fromiter(self.requests.values(), "<i8", len(self.requests)).tobytes(),
            counters=self.counters,
            stamp=self.stamp,
        )
        return msgspec.msgpack.encode(snapshot)


def freeze(bandit: Bandit) -> Frozen:
    """A copy of what moves: as long as it takes to copy the open rounds."""
    return Frozen(
        number=bandit.number,
        learner=twin(bandit.learner),
        requests=bandit.requests.copy(),
        counters=bandit.counters.plain(),
        stamp=bandit.stamp,
    )


def thaw(birth: Birth, snapshot: Snapshot, name: str) -> Bandit:
    """The bandit again."""
    bandit = Bandit(birth, from_bytes(snapshot.policy, name=name))
    digests = snapshot.digests
    keys = (digests[at : at + 16] for at in range(0, len(digests), 16))
    bandit.requests = dict(zip(keys, np.frombuffer(snapshot.rounds, "<i8").tolist(), strict=True))
    bandit.counters.restore(snapshot.counters)
    bandit.stamp = snapshot.stamp
    return bandit


def writing(connection: apsw.Connection, frozen: Frozen, *, seq: int, anchor: bytes) -> Iterator[None]:
    """Write a snapshot as of row `seq`, whose checksum is `anchor`, a part at a time."""
    key, data = key_of(frozen.number, seq), memoryview(frozen.encoded())
    connection.execute("DELETE FROM part WHERE key = ?", (key,))
    parts = 0
    for at in range(0, len(data), _PART):
        connection.execute("INSERT INTO part VALUES (?, ?, ?)", (key, parts, bytes(data[at : at + _PART])))
        parts += 1
        yield
    entry = (key, parts, anchor, _checksum(key, anchor, data))
    connection.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", entry)
    yield
    yield from discarding(connection, frozen.number, keys(connection, frozen.number)[:-KEPT])


def keys(connection: apsw.Connection, bandit: int) -> list[int]:
    """The snapshots of a bandit, oldest first."""
    query = "SELECT key FROM snapshot WHERE key BETWEEN ? AND ? ORDER BY key"
    return [int(key) for (key,) in connection.execute(query, (key_of(bandit, 0), key_of(bandit, _LAST)))]


def discarding(connection: apsw.Connection, bandit: int, unwanted: list[int]) -> Iterator[None]:
    """Remove snapshots, and parts that belong to none."""
    for key in unwanted:
        connection.execute("DELETE FROM snapshot WHERE key = ?", (key,))
        yield
    span = (key_of(bandit, 0), key_of(bandit, _LAST))
    orphans = "SELECT key, part FROM part WHERE key BETWEEN ? AND ? AND key NOT IN (SELECT key FROM snapshot)"
    for orphan in list(connection.execute(orphans, span)):
        connection.execute("DELETE FROM part WHERE key = ? AND part = ?", orphan)
        yield


def newest(connection: apsw.Connection, bandit: int) -> tuple[int, bytes, Snapshot] | None:
    """The newest snapshot that is whole: its row's number and checksum, and what it holds."""
    for key in reversed(keys(connection, bandit)):
        try:
            return _read(connection, key)
        except (DamagedFileError, apsw.CorruptError):
            continue  # an older one, and more of the log, tell the same
    return None


def _read(connection: apsw.Connection, key: int) -> tuple[int, bytes, Snapshot]:
    ((parts, anchor, checksum),) = connection.execute(
        "SELECT parts, anchor, checksum FROM snapshot WHERE key = ?", (key,)
    )
    stored = connection.execute("SELECT data FROM part WHERE key = ? ORDER BY part", (key,))
    try:
        data = b"".join(part for (part,) in stored)
        if _checksum(key, anchor, data) != checksum:
            raise DamagedFileError(f"the snapshot at row {seq_of(key)}, of {parts} parts, is damaged")
        return seq_of(key), anchor, msgspec.msgpack.decode(data, type=Snapshot)
    except (TypeError, msgspec.MsgspecError) as error:
        raise DamagedFileError(f"the snapshot at row {seq_of(key)} is damaged: {error}") from error


def _checksum(key: int, anchor: bytes, data: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(struct.pack("<q", key) + anchor, digest_size=16)
    digest.update(data)
    return digest.digest()
