"""Writes segments of the index of request ids: from the buffer, and by merging segments.

Each function is a background job of the writer's thread, a step a transaction: commits come in between.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import apsw
import msgspec
import numpy as np
import numpy.typing as npt

from latecomer.service.bandit.request_id_index import (
    ENTRY,
    Entries,
    RequestIndex,
    Segment,
    compute_places,
    count_buckets,
    count_filter_words,
    fill_filter,
    sort_entries,
)
from latecomer.service.storage.request_id_segments import (
    PART_WORDS,
    add_checksum,
    make_bucket_reader,
    part_key,
    remove_segment,
    write_manifest,
)

_STEP = 24
"""Buckets that are written in a step: about 4,000 requests, 100 kB."""
Lock = AbstractContextManager[object]


def flush_requests(
    connection: apsw.Connection,
    bandit: int,
    index: RequestIndex,
    taken: dict[bytes, int],
    *,
    last_round: int,
    lock: Lock,
) -> Iterator[None]:
    """Write requests taken from the buffer as a segment; with the others it has all requests up to `last_round`."""
    if not taken:
        return
    try:
        entries = sort_entries(np.array(list(taken.items()), ENTRY))
        writer = _SegmentWriter(connection, bandit, index.segments, most=len(entries), last_round=last_round)
        yield from writer.clear()
        places = compute_places(entries, writer.segment.buckets)
        for low in range(0, writer.segment.buckets, _STEP):
            writer.add(entries[np.searchsorted(places, low) : np.searchsorted(places, low + _STEP)], low)
            yield
        writer.finish(index.segments)
    except BaseException:
        with lock:
            index.cancel_flush(taken)
        raise
    with lock:
        index.end_flush(taken, writer.segment, writer.words)
    yield


def merge_segments(
    connection: apsw.Connection, bandit: int, index: RequestIndex, *, pruned_rounds: int, lock: Lock
) -> Iterator[None]:
    """Drop segments that have no round after `pruned_rounds`; then merge while a merge is due."""
    yield from _drop_segments(connection, bandit, index, pruned_rounds=pruned_rounds, lock=lock)
    while merged := index.find_due_merge():
        writer = _SegmentWriter(
            connection,
            bandit,
            index.segments,
            most=sum(segment.count for segment in merged),
            last_round=max(segment.last_round for segment in merged),
        )
        yield from writer.clear()
        read_bucket = make_bucket_reader(connection, bandit)
        for low in range(0, writer.segment.buckets, _STEP):
            writer.add(_read_buckets(merged, read_bucket, writer.segment.buckets, low), low)
            yield
        writer.finish([segment for segment in index.segments if segment not in merged])
        with lock:
            index.replace(merged, writer.segment, writer.words)
        yield
        for segment in merged:
            yield from remove_segment(connection, bandit, segment.id)


def _drop_segments(
    connection: apsw.Connection, bandit: int, index: RequestIndex, *, pruned_rounds: int, lock: Lock
) -> Iterator[None]:
    dropped = [segment for segment in index.segments if segment.last_round <= pruned_rounds]
    if not dropped:
        return
    others = [segment for segment in index.segments if segment not in dropped]
    write_manifest(connection, bandit, others)
    with lock:
        index.replace(dropped)
    yield
    for segment in dropped:
        yield from remove_segment(connection, bandit, segment.id)


def _read_buckets(
    merged: list[Segment], read_bucket: Callable[[Segment, int], Entries], buckets: int, low: int
) -> Entries:
    """Return the entries of several segments for `_STEP` of the new buckets, from number `low` on."""
    first, last = low * 2**32 // buckets, min(2**32 - 1, -(-(low + _STEP) * 2**32 // buckets))
    entries = np.concatenate(
        [
            read_bucket(segment, bucket)
            for segment in merged
            for bucket in range(first * segment.buckets >> 32, (last * segment.buckets >> 32) + 1)
        ]
    )
    places = compute_places(entries, buckets)
    return sort_entries(entries[(places >= low) & (places < low + _STEP)])


class _SegmentWriter:
    """Writes one segment of at most `most` requests."""

    def __init__(
        self, connection: apsw.Connection, bandit: int, others: list[Segment], *, most: int, last_round: int
    ) -> None:
        self._connection, self._bandit = connection, bandit
        taken = {segment.id for segment in others}
        self.segment = Segment(
            id=next(number for number in range(len(others) + 1) if number not in taken),
            count=0,
            buckets=count_buckets(most),
            words=count_filter_words(most),
            last_round=last_round,
        )
        self._filter: npt.NDArray[np.uint64] = np.zeros(self.segment.words, np.uint64)

    @property
    def words(self) -> memoryview:
        """The Bloom filter as 64-bit words."""
        return self._filter.data.cast("B").cast("Q")

    def clear(self) -> Iterator[None]:
        """Remove the leftovers of an earlier attempt."""
        return remove_segment(self._connection, self._bandit, self.segment.id)

    def add(self, entries: Entries, low: int) -> None:
        """Write `_STEP` buckets from number `low` on, in one transaction."""
        fill_filter(self._filter, entries)
        self.segment = msgspec.structs.replace(self.segment, count=self.segment.count + len(entries))
        buckets = range(low, min(low + _STEP, self.segment.buckets))
        ends = np.searchsorted(compute_places(entries, self.segment.buckets), [*buckets, buckets.stop])
        rows = []
        for i, bucket in enumerate(buckets):
            key = part_key(self._bandit, self.segment.id, bucket)
            rows.append((key, add_checksum(key, entries[ends[i] : ends[i + 1]].tobytes())))
        with self._connection:
            self._connection.executemany("INSERT INTO request_bucket VALUES (?, ?)", rows)

    def finish(self, others: list[Segment]) -> None:
        """Write the filter and the manifest in one transaction, after which the segment exists."""
        data, size = self._filter.tobytes(), PART_WORDS * 8
        with self._connection:
            for part, at in enumerate(range(0, len(data), size)):
                key = part_key(self._bandit, self.segment.id, part)
                row = (key, add_checksum(key, data[at : at + size]))
                self._connection.execute("INSERT INTO request_filter VALUES (?, ?)", row)
            write_manifest(self._connection, self._bandit, [*others, self.segment])
