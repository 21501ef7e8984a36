"""Delays of a log counted in cells: by the bin of the delay, and by the number of bins that were watched.

A decision is watched to the end of a bin or it is not: a delay in a bin that the log's end cuts in two is left out, and
the decision does not count there. So nothing is biased, and only a little is lost. Cells of several files add up.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.delays.distribution import Delays, Floats
from latecomer.delays.estimation.curve import DelayCurve

_BINS_PER_DOUBLING, _DOUBLINGS = 32, 24


def make_time_grid(longest: float, marks: npt.ArrayLike = ()) -> Floats:
    """Return the ends of bins up to `longest`: 32 to every doubling, and the marks that lie between."""
    ladder = longest * 2.0 ** (-np.arange(_BINS_PER_DOUBLING * _DOUBLINGS) / _BINS_PER_DOUBLING)
    between = np.asarray(marks, np.float64)
    return np.unique(np.concatenate([ladder, between[(between > 0.0) & (between < longest)]]))


def make_round_grid(window: int) -> Floats:
    """Return the ends of bins up to a window in rounds: every whole number, and beyond 256 so many to every doubling.

    The first bin, which ends next to 0, holds conversions at once.
    """
    every = np.arange(1.0, min(window, 256) + 1.0)
    later = np.unique(np.rint(make_time_grid(float(window)))) if window > 256 else every
    return np.unique(np.concatenate([[1e-9], every, later[later > 256.0]]))


def count_cells(rows: pl.LazyFrame, ends: Floats, until: float) -> dict[str, Delays]:
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


def estimate_curve(
    cells: dict[str, Delays], ends: Floats, *, prior: float, longest_left_out: bool = False
) -> DelayCurve:
    """Estimate the curve, without the longest delay where that one sets M.

    Given M, all the others are like any delay within M, and the longest is not.

    Where thirty conversions were watched for as long, it would lower the whole curve by a thirtieth.
    """
    delay, watched, count = cells["delay"], cells["watched"], cells["len"]
    seen = (delay >= 0) & (delay < watched)
    events = np.bincount(delay[seen], weights=count[seen], minlength=len(ends)).astype(np.int64)
    limits = np.bincount(watched[seen], weights=count[seen], minlength=len(ends) + 1).astype(np.int64)
    full = seen & (watched == len(ends))
    closed = np.bincount(delay[full], weights=count[full], minlength=len(ends)).astype(np.int64)
    if longest_left_out:
        events[-1] -= 1
        limits[-1] -= 1
        closed[-1] -= 1
    return DelayCurve(ends, events, np.cumsum(events) - np.cumsum(limits)[:-1], prior, closed)
