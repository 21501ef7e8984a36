"""Segments of the index of request ids in the store's file: every part has a checksum, checked when it is read.

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
from latecomer.service.bandit.request_id_index import ENTRY, Entries, RequestIndex, Segment
from latecomer.service.storage.limits import Limits
from latecomer.service.storage.rows import MAX_SEQ, chain_of, key_of

_CHECKSUM = 8
PART_WORDS = 1 << 15
"""Words of a filter in a row: 256 kB."""
_SHIFT = 20
_ROWS = 256
_PARTS = ("request_bucket", "request_filter")


def part_key(bandit: int, segment: int, part: int) -> int:
    """Return the key of a bucket, or of a part of a filter."""
    return key_of(bandit, (segment << _SHIFT) + part)


def add_checksum(key: int, data: bytes) -> bytes:
    """Append a checksum that covers the data and its key."""
    return data + hashlib.blake2b(struct.pack("<q", key) + data, digest_size=_CHECKSUM).digest()


def _strip_checksum(key: int, data: object) -> bytes:
    if not isinstance(data, bytes) or add_checksum(key, data[:-_CHECKSUM]) != data:
        raise make_index_error(chain_of(key))
    return data[:-_CHECKSUM]


def make_index_error(bandit: int) -> DamagedFileError:
    """Return the error that names a damaged index."""
    return DamagedFileError(
        f"the index of request ids of chain {bandit} is damaged: stop the server and start it again, and it is made "
        "anew from the log"
    )


# ---- reading ----


def load_index(connection: apsw.Connection, bandit: int, *, at_least: int, limits: Limits) -> RequestIndex:
    """Read the index; it is not whole where it is damaged, or lacks rounds up to `at_least`."""
    try:
        segments = read_manifest(connection, bandit)
        index = make_index(limits)
        for segment in segments:
            index.replace([], segment, _read_filter(connection, bandit, segment))
    except (DamagedFileError, apsw.CorruptError):
        return make_index(limits, is_whole=False)
    return index if index.indexed >= at_least else make_index(limits, is_whole=False)


def make_index(limits: Limits, *, is_whole: bool = True) -> RequestIndex:
    """Return an empty index."""
    return RequestIndex(is_whole=is_whole, buffer_size=limits.request_buffer, filter_bytes=limits.filter_bytes)


def read_manifest(connection: apsw.Connection, bandit: int) -> list[Segment]:
    """Return the segments of a bandit."""
    found = list(connection.execute("SELECT data FROM request_manifest WHERE bandit = ?", (bandit,)))
    if not found:
        return []
    return msgspec.msgpack.decode(_strip_checksum(key_of(bandit, 0), found[0][0]), type=list[Segment])


def _read_filter(connection: apsw.Connection, bandit: int, segment: Segment) -> memoryview:
    parts = range(-(-segment.words // PART_WORDS))
    data = b"".join(_read(connection, "request_filter", part_key(bandit, segment.id, part)) for part in parts)
    if len(data) != segment.words * 8:
        raise make_index_error(bandit)
    return memoryview(data).cast("Q")


def make_bucket_reader(connection: apsw.Connection, bandit: int) -> Callable[[Segment, int], Entries]:
    """Return a function that reads a bucket of a segment."""

    def read_bucket(segment: Segment, bucket: int) -> Entries:
        return np.frombuffer(_read(connection, "request_bucket", part_key(bandit, segment.id, bucket)), ENTRY)

    return read_bucket


def _read(connection: apsw.Connection, table: str, key: int) -> bytes:
    found = list(connection.execute(f"SELECT data FROM {table} WHERE key = ?", (key,)))  # noqa: S608 - our own name
    return _strip_checksum(key, found[0][0] if found else None)


def check_index(connection: apsw.Connection, bandit: int) -> int:
    """Read the whole index; return the number of its requests. `DamagedFileError` where it is not whole."""
    read_bucket, total = make_bucket_reader(connection, bandit), 0
    for segment in read_manifest(connection, bandit):
        _read_filter(connection, bandit, segment)
        count = sum(len(read_bucket(segment, bucket)) for bucket in range(segment.buckets))
        if count != segment.count:
            raise make_index_error(bandit)
        total += count
    return total


def write_manifest(connection: apsw.Connection, bandit: int, segments: list[Segment]) -> None:
    """Write the list of a bandit's segments."""
    data = add_checksum(key_of(bandit, 0), msgspec.msgpack.encode(segments))
    connection.execute("INSERT OR REPLACE INTO request_manifest VALUES (?, ?)", (bandit, data))


def remove_segment(connection: apsw.Connection, bandit: int, segment: int) -> Iterator[None]:
    """Remove the buckets and the filter of a segment that no manifest lists."""
    first, last = part_key(bandit, segment, 0), part_key(bandit, segment + 1, 0) - 1
    for table in _PARTS:
        yield from _delete(connection, table, first, last)


def remove_index(connection: apsw.Connection, bandit: int) -> Iterator[None]:
    """Remove the whole index of a bandit."""
    connection.execute("DELETE FROM request_manifest WHERE bandit = ?", (bandit,))
    yield
    for table in _PARTS:
        yield from _delete(connection, table, key_of(bandit, 0), key_of(bandit, MAX_SEQ))


def _delete(connection: apsw.Connection, table: str, first: int, last: int) -> Iterator[None]:
    query = f"SELECT key FROM {table} WHERE key BETWEEN ? AND ? LIMIT ?"  # noqa: S608 - our own name
    while keys := [key for (key,) in connection.execute(query, (first, last, _ROWS))]:
        connection.execute(f"DELETE FROM {table} WHERE key BETWEEN ? AND ?", (keys[0], keys[-1]))  # noqa: S608
        yield
