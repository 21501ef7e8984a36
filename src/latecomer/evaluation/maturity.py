"""Maturity of the rounds of a log: F̂_m of the age up to which each was watched, from the log's own conversions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl

from latecomer.core.state import Integers
from latecomer.delays.distribution import Floats
from latecomer.delays.estimation.curve import DelayCurve
from latecomer.delays.readers.delay_cells import count_cells, estimate_curve, make_round_grid, make_time_grid
from latecomer.durations import Span, parse_window
from latecomer.errors import InputError, NotIdentifiableError
from latecomer.evaluation.batch import LogBatch
from latecomer.evaluation.decision_log import DecisionLog

Cells = dict[str, Integers]
_LEAST_TIME = 1e9
"""Seconds since 1970 up to 2001: a log that goes on beyond has times, and does not count rounds."""


@dataclass(frozen=True, eq=False)
class Maturity:
    """F̂_m on a grid of ages; where the window is None, every round is closed."""

    window: float | None
    """m, in the unit of the log's times."""
    until: float
    ends: Floats
    """The ends of the bins, the last being m."""
    shares: Floats
    """F̂_m where no bin was watched (0), the first, the first two, …; the last is 1."""
    greenwood: Floats
    """Of each bin, the variance that its reverse hazard adds to log F̂."""
    counts_rounds: bool = False
    """True where the window is a number of rounds, and the log's times are their numbers."""

    @property
    def bins(self) -> int:
        """The number of bins: a round that was watched for all of them is closed."""
        return len(self.ends)

    def observe(self, batch: LogBatch) -> tuple[Floats, Floats, Integers]:
        """Return the outcome Y, the maturity f and the number of bins watched of each round.

        Y is the value of a conversion that came in one of those bins, and else 0: E[Y] = F_m(R)·E[value].
        """
        if self.window is None:
            watched = np.full(len(batch), self.bins)
        else:
            watched = np.searchsorted(self.ends, self.until - batch.decided, side="right")
        came = np.searchsorted(self.ends, batch.delay, side="left") < watched
        return np.where(came, batch.value, 0.0), self.shares[watched], watched.astype(np.int64)


def closed_maturity() -> Maturity:
    """Return the maturity of a log whose conversions come at once."""
    return Maturity(None, np.inf, np.ones(1), np.array([0.0, 1.0]), np.zeros(1))


def make_grid(window: Span) -> Floats:
    """Return the grid of ages for a window: a time, or rounds where the log's times count rounds."""
    span = parse_window(window)
    if isinstance(span, int):
        if span < 1:
            raise InputError(f"window must be at least 1; got {window!r}", field="window")
        return make_round_grid(span)
    if span <= timedelta(0):
        raise InputError(f"window must be above 0; got {window!r}", field="window")
    return make_time_grid(span.total_seconds())


def check_window(log: DecisionLog, ends: Floats, *, counts_rounds: bool = False) -> None:
    """Refuse a window that no decision of the log was watched for: what comes at its end has left no trace.

    One in rounds is refused where the log has times, for it would be as many seconds.
    """
    if counts_rounds and log.last >= _LEAST_TIME:
        raise InputError(
            f"window must be a time, such as {ends[-1]:.0f}d, since the log has times; got {ends[-1]:.0f}",
            field="window",
        )
    watched = log.until - log.first
    if watched < ends[-1]:
        raise NotIdentifiableError(
            f"window must be at most as long as the oldest decision was watched; {log.name} was watched for "
            f"{timedelta(seconds=round(watched))} ({watched:,.0f}), and the window has {ends[-1]:,.0f}: choose a "
            "shorter window, or wait; what comes later than the log's age leaves no trace in it"
        )


def count_delays(log: DecisionLog, ends: Floats, part: int) -> Cells:
    """Count the delays of a part of the log in cells, which add up."""
    rows = log.scan(part).select("decided", delay=pl.col("converted") - pl.col("decided"))
    return count_cells(rows, ends, log.until)


def estimate_maturity(
    log: DecisionLog, ends: Floats, cells: Sequence[Cells], *, counts_rounds: bool = False
) -> tuple[Maturity, DelayCurve]:
    """Estimate F̂_m from the cells of all parts."""
    merged = {name: np.concatenate([part[name] for part in cells]) for name in cells[0]}
    curve = estimate_curve(merged, ends, prior=1.0)
    shares = np.concatenate([[0.0], curve.cdf])
    return Maturity(float(ends[-1]), log.until, ends, shares, curve.greenwood, counts_rounds), curve
