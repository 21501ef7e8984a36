"""Tests of the conversions of a log: whether their delays depend on the action, or drift over the time of decisions."""

import numpy as np
import polars as pl

from latecomer.delays.estimation.dependence import DependenceTest, test_dependence
from latecomer.delays.readers.table_source import LogSource, list_columns, list_parts, scan_source

ACTION_COLUMNS = ("action_id", "action")
"""Columns that are tested where a log has one of them and none is named."""
_MOST_TESTED = 50_000


def find_action_column(source: LogSource) -> str | None:
    """Return the column of the action, if every part of the log has one of the usual names and one plain type."""
    parts = list_parts(source)
    for name in ACTION_COLUMNS:
        if not all(name in list_columns(part) for part in parts):
            continue
        types = {scan_source(part, [name]).collect_schema()[name] for part in parts}
        if len(types) == 1 and not next(iter(types)).is_nested():
            return name
    return None


def test_conversions(
    rows: pl.LazyFrame, *, until: float, longest: float, conversions: int
) -> tuple[dict[str, DependenceTest], float]:
    """Test for "drift" and, where there is an action, for dependence on the "action".

    Of more than 50,000 conversions every second, third, … is tested. Returned too: the time from which on the later
    half of the conversions was decided.
    """
    limit = pl.min_horizontal(until - pl.col("decided"), pl.lit(longest))
    came = rows.with_columns(limit=limit).filter(pl.col("delay") <= pl.col("limit"))
    table = came.gather_every(max(1, -(-conversions // _MOST_TESTED))).collect(engine="streaming")
    tests = {"drift": _test(table, "decided")}
    if "action" in table.columns:
        known = table.filter(pl.col("action").is_not_null())
        if len(known):
            tests["action"] = _test(known, "action")
    return tests, float(np.median(table["decided"].to_numpy())) if len(table) else until


test_conversions.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def _test(table: pl.DataFrame, x: str) -> DependenceTest:
    values = table[x].to_numpy()
    return test_dependence(
        table["delay"].to_numpy(), table["limit"].to_numpy(), values.astype(str) if x == "action" else values
    )
