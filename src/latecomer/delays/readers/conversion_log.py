"""The delays in a log of conversions: a file of any size, streamed, or a table in memory.

Delays are counted on a grid that is fine enough for any window (`delay_cells.py`).
"""

import math
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.delays.distribution import Delays
from latecomer.delays.estimation.curve import DelayCurve
from latecomer.delays.estimation.dependence import DependenceTest
from latecomer.delays.laws.histogram import Histogram
from latecomer.delays.readers.conversion_log_columns import read_times
from latecomer.delays.readers.delay_cells import count_cells, estimate_curve, make_time_grid
from latecomer.delays.readers.delay_tests import find_action_column, test_conversions
from latecomer.delays.readers.row_checks import RowCounts, describe_skipped
from latecomer.delays.readers.table_source import LogSource, name_source, scan_source
from latecomer.durations import Duration, parse_duration
from latecomer.errors import InputError, LogError
from latecomer.timestamps import Moment, parse_timestamp
from latecomer.validation import check_positive

MIN_OBSERVED = 30
"""A delay is only stated where so many conversions were watched for as long: fewer say next to nothing."""

_DAY = 86_400.0


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
    tests: dict[str, DependenceTest]
    """Tests of "drift" over the time of decisions and, where there is a column for it, of the "action"."""
    later_half: float
    """The time from which on the later half of the conversions was decided: `since`, where delays drift."""

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

    def law(self, *, per_day: float | None = None, unit: Duration | float | None = None) -> Histogram:
        """The law of the delay of those that convert within M, in rounds, to simulate with.

        It is corrected for conversions that had no time to come, as `curve` is. Conversions later than M are not in it.

        Parameters
        ----------
        per_day
            Decisions a day: a round is the time from one to the next. By default as many as the log has.
        unit
            In place of a rate, the length of a round: "1h", a `timedelta` or seconds.
        """
        if per_day is not None and unit is not None:
            raise InputError("per_day and unit must not both be given: each says how long a round is", field="unit")
        if unit is not None:
            seconds = parse_seconds(unit, name="unit")
        else:
            seconds = _DAY / (self.decisions_a_day if per_day is None else check_positive("per_day", per_day))
        return Histogram(self.curve.ends, np.diff(self.curve.cdf, prepend=0.0), unit=seconds)

    @property
    def decisions_a_day(self) -> float:
        """The rate of the log's decisions. Watching may go on for months after the last of them."""
        if self.only_positives:
            raise InputError(
                "per_day must be given, in decisions a day, where every decision of the log has converted: conversions "
                "do not tell how many decisions had none",
                field="per_day",
            )
        made = self.last - self.first
        return self.decisions * _DAY / (made if made > 0.0 else self.until - self.first)


def read_conversions(
    source: LogSource,
    *,
    decided_at: str = "decided_at",
    converted_at: str = "converted_at",
    action: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    longest: Duration | float | None = None,
    marks: npt.ArrayLike = (),
    prior: float = 1.0,
    strict: bool = False,
) -> ConversionLog:
    r"""Read the delays of a log with the times of decisions and of their conversions.

    Parameters
    ----------
    source
        The path of a Parquet file, of a CSV with a header, or of a folder of them; or a table of polars, pandas or
        pyarrow. Times are seconds, or ISO 8601 (UTC where they have no zone); rows in any order. A row without
        `converted_at` is a decision that has not converted.
    decided_at, converted_at
        The names of the two columns.
    action
        The column of the action, on which delays may depend; by default `action_id` or `action`, where the log has it.
    since
        The time of the first decision to read, in any form: of a log whose delays drift, the recent part.
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
    start = None if since is None else parse_timestamp(since, name="since") / 1e6
    limit = math.inf if longest is None else parse_seconds(longest, name="longest")
    names = {"decided_at": decided_at, "converted_at": converted_at}
    scan_source(source, names)  # refuses a log without them
    if (column := action or find_action_column(source)) is not None:
        names["action"] = column
    with read_times(source, strict=strict, names=names) as (every, counts):
        recent = every if start is None else every.filter(pl.col("decided") >= start)
        rows = _cut_at_end(recent, given_end).with_columns(delay=pl.col("converted") - pl.col("decided"))
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
        cells = count_cells(rows, ends, end)
        tests, later_half = test_conversions(rows, until=end, longest=last, conversions=facts["conversions"])
    return ConversionLog(
        curve=estimate_curve(cells, ends, prior=prior, longest_left_out=last == facts["longest"]),
        decisions=facts["decisions"],
        converted=facts["conversions"],
        first=facts["first"],
        last=facts["last"],
        until=end,
        watched=np.bincount(cells["watched"], weights=cells["len"], minlength=len(ends) + 1).astype(np.int64),
        counts=counts,
        tests=tests,
        later_half=later_half,
    )


def parse_seconds(duration: Duration | float, *, name: str) -> float:
    """Give a duration in seconds."""
    if isinstance(duration, timedelta | str | np.timedelta64):
        duration = parse_duration(duration, name=name).total_seconds()
    return check_positive(f"{name}, in seconds,", duration)


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
