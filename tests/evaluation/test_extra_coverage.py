"""The interval of what a policy adds in a month, as `evaluate` prints it, covers the true difference."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from adaptive_logs import RATES, TARGET, TRUTH, WINDOW, AdaptiveLogs, play

import latecomer as lc

MINUTE, TRAFFIC, CONFIDENCE = 60, 100_000.0, 0.9
"""A round a minute; decisions of a month; the confidence that the intervals state."""


def write_table(logs: AdaptiveLogs, run: int) -> pl.DataFrame:
    """Write a log as a shop would have it."""
    rounds = np.arange(logs.action.shape[1])
    came = rounds + logs.delay[run]
    return pl.DataFrame(
        {
            "decided_at": rounds * MINUTE,
            "action": logs.action[run],
            "propensity": logs.propensity[run],
            "converted_at": np.where(came <= rounds[-1], came, np.nan) * MINUTE,
            "kind": logs.context[run],
        }
    ).with_columns(pl.col("converted_at").fill_nan(None))


def choose_by_kind(context: Any, items: Any) -> Any:
    """Return the probabilities of the policy that is asked about."""
    return TARGET[int(context["kind"]), [int(item) for item in items]]


def find_coverage(logs: AdaptiveLogs, estimator: str) -> float:
    """Return the share of logs whose interval of `extra` has the true difference."""
    covered = []
    for run, earned in enumerate(logs.earned):
        log = lc.read_log(write_table(logs, run), context=["kind"])
        found = lc.evaluate(
            log,
            {"other": choose_by_kind},
            window=f"{WINDOW * MINUTE}s",
            estimator=estimator,
            traffic=TRAFFIC,
            confidence=CONFIDENCE,
        )
        row = found.details.filter(policy="other").row(0, named=True)
        covered.append(row["extra_low"] <= (TRUTH - earned) * TRAFFIC <= row["extra_high"])
    return float(np.mean(covered))


def test_a_log_of_equal_chances_earns_the_mean_rate() -> None:
    assert play(2, rounds=120, is_adaptive=False).earned == pytest.approx(RATES.mean())


LONG = [
    pytest.param(600, estimator, is_adaptive, marks=pytest.mark.soak)
    for estimator in ("snips", "ips", "dr")
    for is_adaptive in (False, True)
]


@pytest.mark.parametrize(("runs", "estimator", "is_adaptive"), [(25, "snips", False), *LONG])
def test_the_interval_of_a_month_covers(runs: int, estimator: str, is_adaptive: bool) -> None:
    """Within three standard errors of the nominal coverage, of as many runs."""
    coverage = find_coverage(play(runs, seed=11, is_adaptive=is_adaptive), estimator)
    assert abs(coverage - CONFIDENCE) < 3.0 * np.sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / runs), coverage
