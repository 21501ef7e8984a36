"""The delays in a log of conversions: a file of any size, streamed, or a table in memory.

Delays are counted on a grid that is fine enough for any window. A decision is watched to the end of a bin or it is not:
a delay in a bin that the log's end cuts in two is left out, and the decision does not count there. So nothing is
biased, and only a little is lost.
"""

import math
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.delays.distribution import Delays, Floats
from latecomer.delays.estimation.curve import DelayCurve
from latecomer.delays.readers.conversion_log_columns import read_times
from latecomer.delays.readers.row_checks import RowCounts, describe_skipped
from latecomer.delays.readers.table_source import LogSource, name_source
from latecomer.durations import Duration, parse_duration
from latecomer.errors import LogError
from latecomer.timestamps import Moment, parse_timestamp
from latecomer.validation import check_positive

MIN_OBSERVED = 30
"""A delay is only stated where so many conversions were watched for as long: fewer say next to nothing."""

_BINS_PER_DOUBLING, _DOUBLINGS = 32, 24


@dataclass(frozen=True, eq=False, repr=False)
class ConversionLog:
    """The delays of a log, in seconds, on a grid."""

    curve: DelayCurve
    """F_M, with M the last of its `ends`."""
    decisions: int
    """Clean rows up to `until`."""
    converted: int
    """Decisions that had converted by `until`."""
    first: float
    """The time of the first decision, in the log's own seconds."""
    last: float
    """The time of the last decision, in the log's own seconds."""
    until: float
    """The time when watching ended, in the log's own seconds."""
    watched: Delays
    """The number of decisions watched to the end of no bin, of the first, of the first two, …"""
    counts: RowCounts
    """Rows read, and skipped by reason."""

    def __repr__(self) -> str:
        made, longest = (timedelta(seconds=round(span)) for span in (self.last - self.first, self.curve.ends[-1]))
        return (
            f"ConversionLog(decisions={self.decisions}, converted={self.converted}, over='{made}', "
            f"longest='{longest}', skipped={self.counts.rows - self.counts.used})"
        )

    @property
    def skipped(self) -> dict[str, int]:
        """Dirty rows that were left out, by reason."""
        return self.counts.skipped

    @property
    def only_positives(self) -> bool:
        """True where every decision converted: such a log says nothing on how many did not."""
        return self.converted == self.decisions

    @cached_property
    def conversion_rate(self) -> float:
        """The share of decisions that convert within M, those that are still to come included.

        Conversions over Σ F_M(R) of the decisions: each counts as far as it has matured.
        """
        matured = float(self.watched @ np.concatenate([[0.0], self.curve.cdf]))
        return min(1.0, self.curve.conversions / matured)


def make_time_grid(longest: float, marks: npt.ArrayLike = ()) -> Floats:
    """Return the ends of bins up to `longest`: 32 to every doubling, and the marks that lie between."""
    ladder = longest * 2.0 ** (-np.arange(_BINS_PER_DOUBLING * _DOUBLINGS) / _BINS_PER_DOUBLING)
    between = np.asarray(marks, np.float64)
    return np.unique(np.concatenate([ladder, between[(between > 0.0) & (between < longest)]]))


def read_conversions(
    source: LogSource,
    *,
    until: Moment | None = None,
    longest: Duration | float | None = None,
    marks: npt.ArrayLike = (),
    prior: float = 1.0,
    strict: bool = False,
) -> ConversionLog:
    r"""Read the delays of a log with the columns `decided_at` and `converted_at`.

    Parameters
    ----------
    source
        The path of a Parquet file, or of a CSV with a header; or a table of polars, pandas or pyarrow. Times are
        seconds, or ISO 8601 (UTC where they have no zone); rows in any order. A row without `converted_at` is a
        decision that has not converted.
    until
        When watching ended: a time in any form, a number being seconds as in the log; by default the last moment that
        the log mentions. What came later is not seen.
    longest
        M at most, as "60d", a `timedelta` or seconds; no longer than the longest delay, or than 30 conversions at least
        were watched for.
    marks
        Ages at which F_M is needed: bins end there.
    prior
        As in `DelayEstimate`.
    strict
        Refuse a log with a dirty row. By default such rows are skipped and counted, in `skipped`: no decision time, a
        time that cannot be read or is out of range (as milliseconds are), a conversion before its decision.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from latecomer import delays
    >>> rows = ["decided_at,converted_at", *(f"{s},{s + s % 60 if s % 3 else ''}" for s in range(1000))]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "log.csv")
    ...     size = path.write_text("\n".join(rows))
    ...     log = delays.read_conversions(path, marks=[30])
    >>> log.decisions, log.converted
    (1000, 666)
    >>> round(float(log.curve.cdf[log.curve.ends == 30][0]), 1)
    0.5
    >>> log.skipped
    {}
    """
    name = name_source(source)
    given_end = None if until is None else parse_timestamp(until, name="until") / 1e6
    limit = math.inf if longest is None else _parse_longest(longest)
    with read_times(source, strict=strict) as (every, counts):
        rows = _cut_at_end(every, given_end).with_columns(delay=pl.col("converted") - pl.col("decided"))
        facts = _measure_log(name, rows, counts)
        end = facts["end"] if given_end is None else given_end
        last = min(limit, facts["longest"], end - facts["earliest"])
        if not last > 0.0:
            dirt = describe_skipped(counts)
            raise LogError(
                f"{name} must hold delays above 0: every conversion came at once, and any window will do"
                f"{'; ' if dirt else ''}{dirt}"
            )
        ends = make_time_grid(last, marks)
        cells = _count_cells(rows, ends, end)
    return ConversionLog(
        curve=_estimate_curve(cells, ends, prior=prior, longest_left_out=last == facts["longest"]),
        decisions=facts["decisions"],
        converted=facts["conversions"],
        first=facts["first"],
        last=facts["last"],
        until=end,
        watched=np.bincount(cells["watched"], weights=cells["len"], minlength=len(ends) + 1).astype(np.int64),
        counts=counts,
    )


def _parse_longest(longest: Duration | float) -> float:
    """Give the longest delay to count, in seconds."""
    if isinstance(longest, timedelta | str | np.timedelta64):
        longest = parse_duration(longest, name="longest").total_seconds()
    return check_positive("longest, in seconds,", longest)


def _cut_at_end(rows: pl.LazyFrame, until: float | None) -> pl.LazyFrame:
    """Return the log as it was at that time."""
    if until is None:
        return rows
    early = pl.when(pl.col("converted") <= until).then(pl.col("converted"))
    return rows.filter(pl.col("decided") <= until).with_columns(early)


def _measure_log(name: str, rows: pl.LazyFrame, counts: RowCounts) -> dict[str, Any]:
    """Find the time that the log covers, and refuse one with too few conversions."""
    converted = pl.col("converted").is_not_null()
    query = rows.select(
        decisions=pl.len(),
        conversions=converted.sum(),
        first=pl.col("decided").min(),
        last=pl.col("decided").max(),
        end=pl.max_horizontal(pl.col("decided").max(), pl.col("converted").max()),
        longest=pl.col("delay").max(),
        earliest=pl.col("decided").filter(converted).bottom_k(MIN_OBSERVED).max(),
    )
    facts = query.collect(engine="streaming").row(0, named=True)
    if facts["conversions"] < MIN_OBSERVED:
        dirt = describe_skipped(counts)
        raise LogError(
            f"{name} must hold at least {MIN_OBSERVED} conversions up to the end of watching; "
            f"got {facts['conversions']} in {facts['decisions']:,} rows{'; ' if dirt else ''}{dirt}"
        )
    return facts


def _count_cells(rows: pl.LazyFrame, ends: Floats, until: float) -> dict[str, Delays]:
    """Count the rows by the bin of their delay (−1 for no conversion) and the number of bins watched."""

    def place(column: pl.Expr, side: str) -> pl.Expr:
        def search(values: pl.Series) -> pl.Series:
            return pl.Series(np.searchsorted(ends, values.to_numpy(), side=side), dtype=pl.Int64)  # type: ignore[call-overload]

        return column.map_batches(search, return_dtype=pl.Int64, is_elementwise=True)

    bins = rows.select(
        delay=pl.when(pl.col("delay").is_null()).then(-1).otherwise(place(pl.col("delay").fill_null(0.0), "left")),
        watched=place(until - pl.col("decided"), "right"),  # bins that end by then
    )
    counted = bins.group_by("delay", "watched").len().collect(engine="streaming")
    return {name: counted[name].to_numpy().astype(np.int64) for name in counted.columns}


def _estimate_curve(cells: dict[str, Delays], ends: Floats, *, prior: float, longest_left_out: bool) -> DelayCurve:
    """Estimate the curve, without the longest delay where that one sets M.

    Given M, all the others are like any delay within M, and the longest is not.

    Where thirty conversions were watched for as long, it would lower the whole curve by a thirtieth.
    """
    delay, watched, count = cells["delay"], cells["watched"], cells["len"]
    seen = (delay >= 0) & (delay < watched)
    events = np.bincount(delay[seen], weights=count[seen], minlength=len(ends)).astype(np.int64)
    limits = np.bincount(watched[seen], weights=count[seen], minlength=len(ends) + 1).astype(np.int64)
    if longest_left_out:
        events[-1] -= 1
        limits[-1] -= 1
    return DelayCurve(ends, events, np.cumsum(events) - np.cumsum(limits)[:-1], prior)
