"""Writes segments of the index of request ids: from the buffer, and from segments that are merged.

Each generator is a background job of the writer's, a step a transaction: others commit in between.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import apsw
import msgspec
import numpy as np
import numpy.typing as npt

from latecomer.service.bandit.request_index import (
    ENTRY,
    Entries,
    RequestIndex,
    Segment,
    bucket_count,
    fill_filter,
    filter_words,
    places_of,
    sort_entries,
)
from latecomer.service.storage.request_segments import PART_WORDS, bucket_reader, part_key, remove, seal, write_manifest

_STEP = 24
"""Buckets that are written in a step: about 4,000 requests, 100 kB."""
Lock = AbstractContextManager[object]


def flush(
    connection: apsw.Connection,
    bandit: int,
    index: RequestIndex,
    taken: dict[bytes, int],
    *,
    last_round: int,
    lock: Lock,
) -> Iterator[None]:
    """Write what was taken from the buffer as a segment; it has all requests up to `last_round` that none has yet."""
    if not taken:
        return
    try:
        entries = sort_entries(np.array(list(taken.items()), ENTRY))
        writing = _Writing(connection, bandit, index.segments, most=len(entries), last_round=last_round)
        yield from writing.clear()
        places = places_of(entries, writing.segment.buckets)
        for low in range(0, writing.segment.buckets, _STEP):
            writing.add(entries[np.searchsorted(places, low) : np.searchsorted(places, low + _STEP)], low)
            yield
        writing.finish(index.segments)
    except BaseException:
        with lock:
            index.cancel_flush(taken)
        raise
    with lock:
        index.end_flush(taken, writing.segment, writing.words)
    yield


def merge(connection: apsw.Connection, bandit: int, index: RequestIndex, *, gone: int, lock: Lock) -> Iterator[None]:
    """Drop segments of rounds up to `gone` alone, and merge those that are due, as often as there are any."""
    yield from _drop(connection, bandit, index, gone=gone, lock=lock)
    while merged := index.due_merge():
        writing = _Writing(
            connection,
            bandit,
            index.segments,
            most=sum(segment.count for segment in merged),
            last_round=max(segment.last_round for segment in merged),
        )
        yield from writing.clear()
        read_bucket = bucket_reader(connection, bandit)
        for low in range(0, writing.segment.buckets, _STEP):
            writing.add(_gather(merged, read_bucket, writing.segment.buckets, low), low)
            yield
        writing.finish([segment for segment in index.segments if segment not in merged])
        with lock:
            index.replace(merged, writing.segment, writing.words)
        yield
        for segment in merged:
            yield from remove(connection, bandit, segment.id)


def _drop(connection: apsw.Connection, bandit: int, index: RequestIndex, *, gone: int, lock: Lock) -> Iterator[None]:
    dropped = [segment for segment in index.segments if segment.last_round <= gone]
    if not dropped:
        return
    others = [segment for segment in index.segments if segment not in dropped]
    write_manifest(connection, bandit, others)
    with lock:
        index.replace(dropped)
    yield
    for segment in dropped:
        yield from remove(connection, bandit, segment.id)


def _gather(merged: list[Segment], read_bucket: Callable[[Segment, int], Entries], buckets: int, low: int) -> Entries:
    """The entries of several segments that belong into `_STEP` buckets, of so many, from number `low` on."""
    first, last = low * 2**32 // buckets, min(2**32 - 1, -(-(low + _STEP) * 2**32 // buckets))
    entries = np.concatenate(
        [
            read_bucket(segment, bucket)
            for segment in merged
            for bucket in range(first * segment.buckets >> 32, (last * segment.buckets >> 32) + 1)
        ]
    )
    places = places_of(entries, buckets)
    return sort_entries(entries[(places >= low) & (places < low + _STEP)])


class _Writing:
    """A segment of at most so many requests, on its way into the file."""

    def __init__(
        self, connection: apsw.Connection, bandit: int, others: list[Segment], *, most: int, last_round: int
    ) -> None:
        self._connection, self._bandit = connection, bandit
        taken = {segment.id for segment in others}
        self.segment = Segment(
            id=next(number for number in range(len(others) + 1) if number not in taken),
            count=0,
            buckets=bucket_count(most),
            words=filter_words(most),
            last_round=last_round,
        )
        self._filter: npt.NDArray[np.uint64] = np.zeros(self.segment.words, np.uint64)

    @property
    def words(self) -> memoryview:
        """The filter."""
        return self._filter.data.cast("B").cast("Q")

    def clear(self) -> Iterator[None]:
        """Remove what an earlier attempt has left."""
        return remove(self._connection, self._bandit, self.segment.id)

    def add(self, entries: Entries, low: int) -> None:
        """Write `_STEP` buckets from number `low` on, in one transaction."""
        fill_filter(self._filter, entries)
        self.segment = msgspec.structs.replace(self.segment, count=self.segment.count + len(entries))
        buckets = range(low, min(low + _STEP, self.segment.buckets))
        ends = np.searchsorted(places_of(entries, self.segment.buckets), [*buckets, buckets.stop])
        rows = []
        for i, bucket in enumerate(buckets):
            key = part_key(self._bandit, self.segment.id, bucket)
            rows.append((key, seal(key, entries[ends[i] : ends[i + 1]].tobytes())))
        with self._connection:
            self._connection.executemany("INSERT INTO request_bucket VALUES (?, ?)", rows)

    def finish(self, others: list[Segment]) -> None:
        """Write the filter, and the manifest with the other segments, in one transaction: now the segment exists."""
        data, size = self._filter.tobytes(), PART_WORDS * 8
        with self._connection:
            for part, at in enumerate(range(0, len(data), size)):
                key = part_key(self._bandit, self.segment.id, part)
                row = (key, seal(key, data[at : at + size]))
                self._connection.execute("INSERT INTO request_filter VALUES (?, ?)", row)
            write_manifest(self._connection, self._bandit, [*others, self.segment])
