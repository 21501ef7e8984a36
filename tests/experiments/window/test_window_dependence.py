"""Delays that depend on the action or drift: said first, with the curve of the recent decisions."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import latecomer as lc
from latecomer.errors import InputError, LogError
from latecomer.experiments.window.advice import advise_window

DAY, HOUR = 86_400.0, 3600.0
START = 1_767_225_600.0  # 2026-01-01
SMALL: dict[str, Any] = {"dim": 2, "rounds": 10, "runs": 2}
"""Warnings, curves and bands come from the log alone: so few rounds are played as plain Python."""


def make_log(*, slow: float = 1.0, drift: float = 1.0, rows: int = 20_000, seed: int = 0) -> pl.DataFrame:
    """Twenty days of decisions; delays are so many times longer for action b, and for the later half of the days."""
    rng = np.random.default_rng(seed)
    decided = rng.uniform(0.0, 20 * DAY, rows)
    action = rng.choice(["a", "b"], rows)
    scale = np.where(action == "b", slow, 1.0) * np.where(decided > 10 * DAY, drift, 1.0)
    converted = decided + rng.exponential(5 * HOUR * scale)
    seen = (rng.random(rows) < 0.2) & (converted <= 20 * DAY)
    return pl.DataFrame(
        {
            "decided_at": START + decided,
            "converted_at": pl.Series(np.where(seen, START + converted, np.nan)).fill_nan(None),
            "action": action,
        }
    )


def test_one_law_for_all_is_no_warning() -> None:
    found = advise_window(make_log(), **SMALL)
    assert found.warning == ""
    assert found.recent is None
    assert {name: test["rejects"] for name, test in found.facts["tests"].items()} == {"drift": False, "action": False}


def test_delays_that_depend_on_the_action_are_said_first() -> None:
    found = advise_window(make_log(slow=2.0), **SMALL)
    assert found.warning.startswith("WARNING: delays depend on the action (p ")
    assert found.finding.startswith(found.warning)
    assert found.facts["tests"]["action"]["p_value"] < 0.01
    assert not found.facts["tests"]["drift"]["rejects"]


def test_delays_that_drift_are_said_first_with_the_recent_curve() -> None:
    found = advise_window(make_log(drift=2.0), **SMALL)
    assert found.warning.startswith("WARNING: delays drift over the time of the log (p ")
    assert "since=2026-01-10T" in found.warning or "since=2026-01-11T" in found.warning
    assert found.recent is not None
    assert found.recent.columns == found.curve.columns
    longest = found.recent["seconds"][-1]
    ages = np.array([2 * HOUR, 5 * HOUR, 12 * HOUR])
    truth = (1 - np.exp(-ages / (10 * HOUR))) / (1 - np.exp(-longest / (10 * HOUR)))
    recent, pooled = (
        np.interp(ages, curve["seconds"].to_numpy(), curve["share"].to_numpy()) for curve in (found.recent, found.curve)
    )
    np.testing.assert_allclose(recent, truth, atol=0.05)
    assert (pooled > truth + 0.07).all(), "the pooled curve is a mean of two laws"


def test_since_reads_the_recent_decisions_alone(tmp_path: Path) -> None:
    log = make_log(drift=2.0)
    log.write_parquet(tmp_path / "log.parquet")
    recent = advise_window(tmp_path / "log.parquet", since="2026-01-11T00:00:00Z", **SMALL)
    assert recent.warning == ""
    cut = lc.delays.read_conversions(log.filter(pl.col("decided_at") >= START + 10 * DAY))
    read = lc.delays.read_conversions(tmp_path / "log.parquet", since=START + 10 * DAY)
    np.testing.assert_array_equal(read.curve.events, cut.curve.events)
    with pytest.raises(LogError, match="at least 30 conversions"):
        lc.delays.read_conversions(log, since=START + 20 * DAY)


def test_too_few_conversions_are_no_warning() -> None:
    """The test rejects where p < 0.01 with at least 100 conversions."""
    few = make_log(slow=30.0, drift=1.0, rows=500, seed=1)
    found = advise_window(few, **SMALL)
    assert found.facts["tests"]["action"]["conversions"] < 100
    assert found.facts["tests"]["action"]["p_value"] < 0.01
    assert found.warning == ""


def test_action_column_may_have_any_name_and_plain_type(tmp_path: Path) -> None:
    log = make_log(slow=2.0).rename({"action": "offer"}).with_columns(pl.col("offer").replace_strict({"a": 1, "b": 2}))
    assert set(lc.delays.read_conversions(log).tests) == {"drift"}
    assert lc.delays.read_conversions(log, action="offer").tests["action"].names == ("1", "2")
    with pytest.raises(LogError, match="missing: none"):
        lc.delays.read_conversions(log, action="none")
    vectors = log.with_columns(action=pl.concat_list("decided_at"))
    assert set(lc.delays.read_conversions(vectors).tests) == {"drift"}
    with pytest.raises(LogError, match="plain"):
        lc.delays.read_conversions(vectors, action="action")
    for i, part in enumerate((log.head(10_000), log.tail(10_000).with_columns(action=pl.lit("x")))):
        part.write_parquet(tmp_path / f"{i}.parquet")
    assert set(lc.delays.read_conversions(tmp_path).tests) == {"drift"}, "one file has no such column"


def test_band_of_the_table_is_the_one_asked_for() -> None:
    log = make_log(rows=4000)
    widths = [
        (found.table["high"] - found.table["low"])[1:-1].to_numpy()
        for found in (advise_window(log, band=band, **SMALL) for band in ("mid-p", "conservative", "anytime"))
    ]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < widths[2]).all()
    with pytest.raises(InputError, match="band must be one of"):
        advise_window(log, band="wide", **SMALL)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["action", "since", "until"])
def test_a_law_has_no_log(option: str) -> None:
    with pytest.raises(InputError, match=f"{option} is for logs"):
        advise_window(lc.delays.LogNormal(1800, 1.0), rate=100, **{option: "2026-01-01"}, **SMALL)  # type: ignore[arg-type]
