"""Counts by time, in at most `MOST` buckets: as time goes on, buckets become wider and neighbours merge.

The width is the least of `WIDTHS` with which the first and the last event are less than `MOST` buckets apart, so the
counts depend on the events alone, and not on how they were grouped. Sums are whole numbers: they do not depend on the
order of addition either.
"""

from typing import Any

import numpy as np

from latecomer.core.state import Integers

MOST = 96
_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86_400
WIDTHS = (
    *(_SECOND, 5, 15, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 3 * _HOUR, 6 * _HOUR),
    *(_DAY, 7 * _DAY, 28 * _DAY, 364 * _DAY, 3640 * _DAY),
)
"""Seconds; each divides the next. The last is enough for every time that a store can have."""
_MICROSECONDS = 1_000_000


class TimeBuckets:
    """A row of whole numbers for each bucket. The number of columns may grow."""

    def __init__(self, columns: int) -> None:
        self.width = WIDTHS[0]
        """Seconds of a bucket."""
        self.origin = 0
        """The time of the first bucket, in widths since 1970."""
        self.counts = np.zeros((0, columns), np.int64)

    @property
    def starts(self) -> Integers:
        """The begin of each bucket, in seconds since 1970, and the end of the last."""
        return (self.origin + np.arange(len(self.counts) + 1)) * self.width

    def cover(self, first: int, last: int) -> None:
        """Make buckets for events from `first` to `last`, in microseconds since 1970."""
        first, last = first // _MICROSECONDS, last // _MICROSECONDS
        if len(self.counts):
            first = min(first, self.origin * self.width)
            last = max(last, (self.origin + len(self.counts)) * self.width - 1)
        if len(self.counts) and (last // self.width - first // self.width) < MOST:
            self._extend(first // self.width, last // self.width)
            return
        width = next(width for width in WIDTHS if last // width - first // width < MOST and width >= self.width)
        merged = np.zeros((last // width - first // width + 1, self.counts.shape[1]), np.int64)
        np.add.at(merged, self.starts[:-1] // width - first // width, self.counts)
        self.width, self.origin, self.counts = width, first // width, merged

    def _extend(self, first: int, last: int) -> None:
        before, after = self.origin - first, last - (self.origin + len(self.counts)) + 1
        if before or after:
            self.counts = np.pad(self.counts, ((before, after), (0, 0)))
            self.origin = first

    def add(self, stamps: Integers, column: int | Integers, amounts: int | Integers = 1) -> None:
        """Add amounts to a column, each in the bucket of its stamp; the buckets must cover it."""
        self.add_at(stamps // (_MICROSECONDS * self.width) - self.origin, column, amounts)

    def add_at(self, places: Integers, column: int | Integers, amounts: int | Integers) -> None:
        """Add amounts to a column, each in the bucket of its place."""
        np.add.at(self.counts.reshape(-1), places * self.counts.shape[1] + column, amounts)

    def widen(self, columns: int) -> None:
        """Add columns of zeros, up to so many."""
        if columns > self.counts.shape[1]:
            self.counts = np.pad(self.counts, ((0, 0), (0, columns - self.counts.shape[1])))

    def to_dict(self) -> dict[str, Any]:
        """Return the buckets for a snapshot."""
        shape, data = list(self.counts.shape), self.counts.astype("<i8").tobytes()
        return {"width": self.width, "origin": self.origin, "shape": shape, "counts": data}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the buckets of a snapshot."""
        self.width, self.origin = saved["width"], saved["origin"]
        self.counts = np.frombuffer(saved["counts"], "<i8").reshape(saved["shape"]).astype(np.int64)
