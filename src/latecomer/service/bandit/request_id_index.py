"""The index of request ids: which round answered a request, in two bytes of memory a request. No I/O.

The log is the truth: a decision's row has its request's digest. The latest requests are in a dictionary, the buffer.
When it is full it becomes a *segment*: an immutable sorted list of (digest, round), cut into buckets by the digest's
leading bits, that lives on disk. A segment keeps a Bloom filter in memory, so that a new request, as nearly all are,
reads no bucket. Eight segments of a level are merged into one of the next.

Digests are uniform (BLAKE2b), so that a bucket and a filter's word are found by multiplication. A filter has a word of
64 bits for four requests, of which each sets four bits: one in two hundred of the requests that it lacks pass it.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

DIGEST = 16
BUFFER_SIZE = 16_384
"""Requests in the buffer, after which it becomes a segment."""
FAN_IN = 8
"""Segments of one level that are merged into one."""
LEVELS = 3
"""Levels that are merged: a segment of more than `BUFFER_SIZE` · 8³ requests, eight million, is not."""
BUCKET = 160
"""Requests in a bucket, about: 4 kB."""
FILTER_BYTES = 64 << 20
"""Bytes of filters that a bandit keeps in memory; segments without one are read for every request."""
_PER_WORD = 4

ENTRY = np.dtype([("digest", f"V{DIGEST}"), ("round", "<i8")])
Entries = npt.NDArray[np.void]
"""Digests and rounds, sorted by digest."""
ReadBucket = Callable[["Segment", int], Entries]


class Segment(Struct, frozen=True, kw_only=True):
    """A segment: the number of its requests, buckets and filter words, and the last round that it may have."""

    id: int
    count: int
    buckets: int
    words: int
    last_round: int


class RequestIndex:
    """Rounds by their request's digest.

    Parameters
    ----------
    is_whole
        False where the segments lack requests, which must then be read from the log again.
    buffer_size
        Requests in the buffer, after which it becomes a segment.
    filter_bytes
        Bytes of filters that are kept in memory; segments without one are read for every request.
    """

    def __init__(
        self, *, is_whole: bool = True, buffer_size: int = BUFFER_SIZE, filter_bytes: int = FILTER_BYTES
    ) -> None:
        self._buffer_size, self._filter_bytes = buffer_size, filter_bytes
        self._buffer: dict[bytes, int] = {}
        self._flushing: list[dict[bytes, int]] = []
        self._segments: list[tuple[Segment, memoryview | None]] = []
        self.is_whole = is_whole

    @property
    def indexed(self) -> int:
        """The last round whose request is in a segment; so are all before it."""
        return max((segment.last_round for segment, _ in self._segments), default=0)

    @property
    def is_full(self) -> bool:
        """True where the buffer should become a segment, and none is being written."""
        return len(self._buffer) >= self._buffer_size and not self._flushing

    @property
    def segments(self) -> list[Segment]:
        """The segments on disk, oldest first."""
        return [segment for segment, _ in self._segments]

    @property
    def buffered(self) -> int:
        """The number of requests that are in no segment yet."""
        return len(self._buffer) + sum(map(len, self._flushing))

    def add(self, digest: bytes, round: int) -> None:
        """Add a request and the round that answered it."""
        self._buffer[digest] = round

    def update(self, digests: list[bytes], rounds: list[int]) -> None:
        """Add requests read from the log, except those that a segment has."""
        indexed = self.indexed
        pairs = zip(digests, rounds, strict=True)
        self._buffer.update((digest, round_) for digest, round_ in pairs if round_ > indexed)

    def find(self, digest: bytes, read_bucket: ReadBucket) -> int | None:
        """Return the latest round that answered a request, or None."""
        found = self._buffer.get(digest)
        for waiting in self._flushing if found is None else ():
            found = waiting.get(digest, found)
        if found is not None or not self._segments:
            return found
        place, mask = int.from_bytes(digest[:4], "big"), _make_mask(digest)
        for segment, words in self._segments:
            if words is None or words[place * len(words) >> 32] & mask == mask:
                round_ = _search(read_bucket(segment, place * segment.buckets >> 32), digest)
                found = max(round_, found or 0) or None
        return found

    # ---- from the buffer to a segment, and from segments to others; the caller holds the store's lock ----

    def begin_flush(self) -> dict[bytes, int]:
        """Take what is in the buffer for a new segment; requests are found in it until `end_flush`."""
        taken, self._buffer = self._buffer, {}
        if taken:
            self._flushing.append(taken)
        return taken

    def end_flush(self, taken: dict[bytes, int], segment: Segment, words: memoryview) -> None:
        """Use the new segment, which is on disk, instead of what was taken."""
        self._flushing = [waiting for waiting in self._flushing if waiting is not taken]
        self._keep([*self._segments, (segment, words)])

    def cancel_flush(self, taken: dict[bytes, int]) -> None:
        """Give what was taken to the next segment: a segment must not have later requests before it has these."""
        self._flushing = [waiting for waiting in self._flushing if waiting is not taken]
        target = self._flushing[0] if self._flushing else self._buffer
        target.update({digest: round_ for digest, round_ in taken.items() if digest not in target})

    def replace(self, old: Iterable[Segment], new: Segment | None = None, words: memoryview | None = None) -> None:
        """Replace merged segments by the new one; without a new one, drop them."""
        kept = [pair for pair in self._segments if pair[0] not in old]
        self._keep(kept if new is None else [*kept, (new, words)])

    def _keep(self, segments: list[tuple[Segment, memoryview | None]]) -> None:
        """Keep filters in memory, of the latest segments first, as far as they may be."""
        room, kept = self._filter_bytes, []
        for segment, words in sorted(segments, key=lambda pair: -pair[0].last_round):
            room -= segment.words * 8
            kept.append((segment, words if room >= 0 else None))
        self._segments = kept[::-1]

    def find_due_merge(self) -> list[Segment]:
        """Return the segments of one level that should be merged; none where there are few."""
        for level in range(LEVELS):
            same = [segment for segment in self.segments if self.find_level(segment) == level]
            if len(same) >= FAN_IN:
                return same
        return []

    def find_level(self, segment: Segment) -> int:
        """Return the power of `FAN_IN` that a segment's size is, in full buffers."""
        level = 0
        while level < LEVELS and segment.count > self._buffer_size * FAN_IN**level:
            level += 1
        return level


def count_filter_words(count: int) -> int:
    """Return the number of 64-bit words in the filter of so many requests."""
    return count // _PER_WORD + 1


def count_buckets(count: int) -> int:
    """Return the number of buckets in a segment of so many requests."""
    return count // BUCKET + 1


def sort_entries(entries: Entries) -> Entries:
    """Sort entries by digest; of two with the same digest the later round is kept."""
    high, low = _split_digests(entries)
    order = np.lexsort((entries["round"], low, high))
    high, low = high[order], low[order]
    is_last = np.ones(len(entries), bool)
    is_last[:-1] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return entries[order][is_last]


def compute_places(entries: Entries, parts: int) -> npt.NDArray[np.int64]:
    """Return which of `parts` equal parts of the digest range each entry lies in."""
    high, _ = _split_digests(entries)
    return ((high >> np.uint64(32)) * np.uint64(parts) >> np.uint64(32)).astype(np.int64)


def fill_filter(words: npt.NDArray[np.uint64], entries: Entries) -> None:
    """Set the bits of entries, sorted by digest, in a filter."""
    if not len(entries):
        return
    places = compute_places(entries, len(words))
    bits = np.ascontiguousarray(entries["digest"]).view(np.uint8).reshape(-1, DIGEST)[:, 8:12] & 63
    masks = np.bitwise_or.reduce(np.uint64(1) << bits.astype(np.uint64), axis=1)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    words[places[starts]] |= np.bitwise_or.reduceat(masks, starts)


def _split_digests(entries: Entries) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Split digests into two numbers, the more significant first; they sort as the bytes do."""
    halves = np.ascontiguousarray(entries["digest"]).view(">u8").reshape(-1, 2).astype(np.uint64)
    return halves[:, 0], halves[:, 1]


def _make_mask(digest: bytes) -> int:
    return 1 << (digest[8] & 63) | 1 << (digest[9] & 63) | 1 << (digest[10] & 63) | 1 << (digest[11] & 63)


def _search(entries: Entries, digest: bytes) -> int:
    """Return the round of a digest in a bucket, or 0."""
    digests = entries["digest"].tobytes()
    at = digests.find(digest)
    while at >= 0 and at % DIGEST:
        at = digests.find(digest, at + 1)
    return int(entries["round"][at // DIGEST]) if at >= 0 else 0
