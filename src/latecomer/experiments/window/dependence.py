"""Delays that depend on the action, or drift: a warning, and the curve of the recent decisions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from latecomer.delays.distribution import Floats
from latecomer.delays.estimation.bands import Band
from latecomer.delays.estimation.dependence import DependenceTest
from latecomer.delays.readers.conversion_log import ConversionLog
from latecomer.durations import format_duration
from latecomer.errors import LogError
from latecomer.timestamps import to_datetime

_CLOCK_BEGINS = 1e8  # seconds; less is no date, but a log's own count


@dataclass(frozen=True, eq=False)
class RecentDelays:
    """The delay curve of the decisions since a time."""

    since: float
    ends: Floats
    share: Floats
    low: Floats
    high: Floats

    def compare(self, ends: Floats, share: Floats) -> str:
        """Write what the window that keeps half of the conversions keeps in the recent part and in the whole log."""
        longest = min(float(self.ends[-1]), float(ends[-1]))
        of_recent, of_all = (float(s[np.searchsorted(e, longest)]) for e, s in ((self.ends, self.share), (ends, share)))
        half = ends[np.searchsorted(share / of_all, 0.5)]
        recent = float(self.share[np.searchsorted(self.ends, half)]) / of_recent
        pooled = float(share[np.searchsorted(ends, half)]) / of_all
        return (
            f"Within {format_duration(half)} come {recent:.1%} of those within {format_duration(longest)}, and "
            f"{pooled:.1%} by the whole log"
        )


def read_recent(log: ConversionLog, read: Callable[..., ConversionLog], *, band: Band) -> RecentDelays | None:
    """Read the later half of a log whose delays drift; None where they do not, or where that is too little."""
    if not log.tests["drift"].rejects:
        return None
    try:
        recent = read(since=to_datetime(round(log.later_half * 1e6)))
    except LogError:
        return None
    low, high = recent.curve.confidence_band(0.9, band=band)
    return RecentDelays(log.later_half, recent.curve.ends, recent.curve.cdf, low, high)


def write_dependence(log: ConversionLog, recent: RecentDelays | None) -> str:
    """Write the warnings of the tests that reject, and nothing where none does."""
    said = []
    if (test := log.tests.get("action")) is not None and test.rejects:
        said.append(
            f"WARNING: delays depend on the action ({_write_p(test)}): one curve fits no action, and matured, imputed "
            "and logistic policies, the recommended one among them, take slow actions for bad ones while rounds are "
            "open; policies that wait, and the tight width, do not."
        )
    if (test := log.tests["drift"]).rejects:
        offer = "a longer log may show the recent ones alone"
        if recent is not None:
            when = _format_time(recent.since)
            offer = f"the recent decisions alone are read with since={when}, or --since"
            offer = f"{offer}. {recent.compare(log.curve.ends, log.curve.cdf)}"
        said.append(
            f"WARNING: delays drift over the time of the log ({_write_p(test)}): its curve is a mean over old and "
            f"recent decisions; {offer}."
        )
    return " ".join(said)


def collect_tests(tests: Mapping[str, DependenceTest]) -> dict[str, dict[str, Any]]:
    """Return the tests as plain data."""
    return {
        name: {
            "p_value": test.p_value,
            "statistic": test.statistic,
            "degrees": test.degrees,
            "conversions": test.conversions,
            "rejects": test.rejects,
        }
        for name, test in tests.items()
    }


def _write_p(test: DependenceTest) -> str:
    p = f"p = {test.p_value:.2g}" if test.p_value >= 1e-10 else "p < 1e-10"
    return f"{p}, {test.conversions:,} conversions"


def _format_time(seconds: float) -> str:
    if seconds < _CLOCK_BEGINS:
        return f"{seconds:.0f}"
    return f"{to_datetime(round(seconds * 1e6)):%Y-%m-%dT%H:%M:%SZ}"
