"""The delays and the traffic, from a log of conversions or from a law."""

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np

from latecomer.delays import DelayLaw, Empirical
from latecomer.delays.distribution import NEVER, Floats
from latecomer.delays.estimation.bands import DEFAULT_BAND, Band
from latecomer.delays.readers.conversion_log import ConversionLog, read_conversions
from latecomer.delays.readers.delay_cells import make_time_grid
from latecomer.delays.readers.row_checks import describe_skipped
from latecomer.delays.readers.table_source import LogSource
from latecomer.durations import format_duration
from latecomer.errors import InputError
from latecomer.experiments.window.dependence import RecentDelays, collect_tests, read_recent, write_dependence
from latecomer.experiments.window.grid import HOUR, LADDER
from latecomer.timestamps import Moment, to_datetime
from latecomer.validation import check_positive

USUAL_CONVERSION_RATE = 0.05
_ENOUGH = 0.99


@dataclass(frozen=True, eq=False)
class KnownDelays:
    """The delay curve and the traffic."""

    ends: Floats
    """Ages in seconds, the last being M."""
    share: Floats
    """F_M at each end."""
    low: Floats
    """The lower end of its 90 % band."""
    high: Floats
    """The upper end of its 90 % band."""
    rate: float
    """Decisions an hour."""
    conversion_rate: float
    """The share of decisions that convert within M."""
    origin: str
    """The log or the law that this is from, in words."""
    rows: int = 0
    """Rows of the log."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Dirty rows, by reason."""
    dirt: str = ""
    """Dirty rows in words."""
    warning: str = ""
    """Sentences where dirty rows are more than half, and where delays depend on the action or drift."""
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The tests of dependence and drift, as plain data."""
    recent: RecentDelays | None = None
    """The curve of the recent decisions, where delays drift."""

    @property
    def longest(self) -> float:
        """M, in seconds."""
        return float(self.ends[-1])

    def at(self, window: float) -> tuple[float, float, float]:
        """The share that a window keeps, and its band."""
        place = min(int(np.searchsorted(self.ends, window)), len(self.ends) - 1)
        return float(self.share[place]), float(self.low[place]), float(self.high[place])

    def in_rounds(self, rounds_an_hour: float) -> Empirical:
        """The law of the delay in rounds, each bin standing at its middle."""
        middles = self.ends - np.diff(self.ends, prepend=0.0) / 2.0
        rounds = np.minimum(np.floor(middles * rounds_an_hour / HOUR), NEVER).astype(np.int64)
        return Empirical(rounds, np.diff(self.share, prepend=0.0))


def read_log_delays(
    source: LogSource,
    *,
    decided_at: str = "decided_at",
    converted_at: str = "converted_at",
    action: str | None = None,
    since: Moment | None = None,
    until: Moment | None,
    band: Band = DEFAULT_BAND,
    longest: timedelta | None,
    rate: float | None,
    conversion_rate: float | None,
    strict: bool = False,
) -> KnownDelays:
    """Read a log; a rate that it does not show must be given."""
    read = partial(
        read_conversions,
        source,
        decided_at=decided_at,
        converted_at=converted_at,
        action=action,
        until=until,
        longest=longest,
        marks=LADDER,
        strict=strict,
    )
    log = read(since=since)
    low, high = log.curve.confidence_band(0.9, band=band)
    recent = read_recent(log, partial(read, until=to_datetime(round(log.until * 1e6))), band=band)
    rate = _measure_rate(log) if rate is None else rate
    if conversion_rate is None:
        conversion_rate = USUAL_CONVERSION_RATE if log.only_positives else log.conversion_rate
    return KnownDelays(
        ends=log.curve.ends,
        share=log.curve.cdf,
        low=low,
        high=high,
        rate=rate,
        conversion_rate=conversion_rate,
        origin=_describe_log(log),
        rows=log.counts.rows,
        skipped=log.skipped,
        dirt=describe_skipped(log.counts),
        warning=" ".join(filter(None, [log.counts.warning, write_dependence(log, recent)])),
        tests=collect_tests(log.tests),
        recent=recent,
    )


def _describe_log(log: ConversionLog) -> str:
    made, watched = format_duration(log.last - log.first), format_duration(log.until - log.first)
    rows = (
        f"{log.converted:,} conversions"
        if log.only_positives
        else (f"{log.converted:,} conversions of {log.decisions:,} decisions")
    )
    return f"{rows} over {made}" + (f", watched for {watched}" if watched != made else "")


def _measure_rate(log: ConversionLog) -> float:
    if log.only_positives:
        dirt = describe_skipped(log.counts)
        every = "row that was used" if dirt else "row of the log"
        raise InputError(
            f"rate must be given, in decisions an hour, where every {every} has "
            f"converted: conversions do not tell how many decisions had none{'; but ' if dirt else ''}{dirt}",
            field="rate",
        )
    made = log.last - log.first  # watching may go on for months after the last decision
    return log.decisions / (made if made > 0.0 else log.until - log.first) * HOUR


def read_law_delays(
    law: DelayLaw, *, unit: timedelta, longest: timedelta | None, rate: float | None, conversion_rate: float | None
) -> KnownDelays:
    """Return the delays of a law, which is certain: its band has no width."""
    if rate is None:
        raise InputError("rate must be given with a law, in decisions an hour", field="rate")
    second = check_positive("unit, in seconds,", unit.total_seconds())
    ladder = np.asarray(law.cdf(np.floor(LADDER / second)))
    if not ladder[-1] > 0.0:
        raise InputError(
            f"{law!r} must let some conversions come within {format_duration(LADDER[-1])}; check its unit, {unit}"
        )
    enough = LADDER[np.argmax(ladder >= _ENOUGH * ladder[-1])]
    last = check_positive("longest, in seconds,", longest.total_seconds()) if longest is not None else float(enough)
    ends = make_time_grid(last, LADDER)
    known = np.asarray(law.cdf(np.floor(ends / second)))
    if not known[-1] > 0.0:
        raise InputError(
            f"longest must let some conversions come; within {format_duration(last)}, {law!r} has none", field="longest"
        )
    share = known / known[-1]
    given = USUAL_CONVERSION_RATE if conversion_rate is None else conversion_rate
    return KnownDelays(ends, share, share, share, rate, given, repr(law))
