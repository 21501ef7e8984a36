"""Segments of the index of request ids in the store's file: every part sealed, and checked when it is read.

A bandit's manifest lists its segments, and changes in the same transaction in which a segment becomes whole; buckets
and filters that no manifest lists are left over from a step that was cut short, and are removed.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator

import apsw
import msgspec
import numpy as np

from latecomer.errors import DamagedFileError
from latecomer.service.bandit.request_index import ENTRY, Entries, RequestIndex, Segment
from latecomer.service.storage.rows import LAST, key_of

_SEAL = 8
PART_WORDS = 1 << 15
"""Words of a filter in a row: 256 kB."""
_SHIFT = 20
_ROWS = 256
_PARTS = ("request_bucket", "request_filter")


def part_key(bandit: int, segment: int, part: int) -> int:
    """Where a bucket, or a part of a filter, lives."""
    return key_of(bandit, (segment << _SHIFT) + part)


def seal(key: int, data: bytes) -> bytes:
    """Data with a checksum behind it that covers its place, too."""
    return data + hashlib.blake2b(struct.pack("<q", key) + data, digest_size=_SEAL).digest()


def _unseal(key: int, data: object) -> bytes:
    if not isinstance(data, bytes) or seal(key, data[:-_SEAL]) != data:
        raise damaged_index(key >> 40)
    return data[:-_SEAL]


def damaged_index(bandit: int) -> DamagedFileError:
    """The error that says so."""
    return DamagedFileError(
        f"the index of request ids of chain {bandit} is damaged: stop the server and start it again, and it is made "
        "anew from the log"
    )


# ---- reading ----


def load(connection: apsw.Connection, bandit: int, *, at_least: int) -> RequestIndex:
    """The index as the file has it; not whole where it is damaged, or lacks rounds up to `at_least`."""
    try:
        segments = read_manifest(connection, bandit)
        index = RequestIndex()
        for segment in segments:
            index.replace([], segment, _read_filter(connection, bandit, segment))
    except (DamagedFileError, apsw.CorruptError):
        return RequestIndex(is_whole=False)
    return index if index.indexed >= at_least else RequestIndex(is_whole=False)


def read_manifest(connection: apsw.Connection, bandit: int) -> list[Segment]:
    """The segments of a bandit."""
    found = list(connection.execute("SELECT data FROM request_manifest WHERE bandit = ?", (bandit,)))
    if not found:
        return []
    return msgspec.msgpack.decode(_unseal(key_of(bandit, 0), found[0][0]), type=list[Segment])


def _read_filter(connection: apsw.Connection, bandit: int, segment: Segment) -> memoryview:
    parts = range(-(-segment.words // PART_WORDS))
    data = b"".join(_read(connection, "request_filter", part_key(bandit, segment.id, part)) for part in parts)
    if len(data) != segment.words * 8:
        raise damaged_index(bandit)
    return memoryview(data).cast("Q")


def bucket_reader(connection: apsw.Connection, bandit: int) -> Callable[[Segment, int], Entries]:
    """A function that reads a segment's bucket."""

    def read_bucket(segment: Segment, bucket: int) -> Entries:
        return np.frombuffer(_read(connection, "request_bucket", part_key(bandit, segment.id, bucket)), ENTRY)

    return read_bucket


def _read(connection: apsw.Connection, table: str, key: int) -> bytes:
    found = list(connection.execute(f"SELECT data FROM {table} WHERE key = ?", (key,)))  # noqa: S608 - our own name
    return _unseal(key, found[0][0] if found else None)


def check(connection: apsw.Connection, bandit: int) -> int:
    """Read the whole index; how many requests it has. `DamagedFileError` where it is not whole."""
    read_bucket, total = bucket_reader(connection, bandit), 0
    for segment in read_manifest(connection, bandit):
        _read_filter(connection, bandit, segment)
        count = sum(len(read_bucket(segment, bucket)) for bucket in range(segment.buckets))
        if count != segment.count:
            raise damaged_index(bandit)
        total += count
    return total


def write_manifest(connection: apsw.Connection, bandit: int, segments: list[Segment]) -> None:
    """List a bandit's segments."""
    data = seal(key_of(bandit, 0), msgspec.msgpack.encode(segments))
    connection.execute("INSERT OR REPLACE INTO request_manifest VALUES (?, ?)", (bandit, data))


def remove(connection: apsw.Connection, bandit: int, segment: int) -> Iterator[None]:
    """Remove the buckets and the filter of a segment that no manifest lists."""
    first, last = part_key(bandit, segment, 0), part_key(bandit, segment + 1, 0) - 1
    for table in _PARTS:
        yield from _delete(connection, table, first, last)


def remove_all(connection: apsw.Connection, bandit: int) -> Iterator[None]:
    """Remove the index of a bandit that is deleted, or of one whose index is to be made anew."""
    connection.execute("DELETE FROM request_manifest WHERE bandit = ?", (bandit,))
    yield
    for table in _PARTS:
        yield from _delete(connection, table, key_of(bandit, 0), key_of(bandit, LAST))


def _delete(connection: apsw.Connection, table: str, first: int, last: int) -> Iterator[None]:
    query = f"SELECT key FROM {table} WHERE key BETWEEN ? AND ? LIMIT ?"  # noqa: S608 - our own name
    while keys := [key for (key,) in connection.execute(query, (first, last, _ROWS))]:
        connection.execute(f"DELETE FROM {table} WHERE key BETWEEN ? AND ?", (keys[0], keys[-1]))  # noqa: S608
        yield
