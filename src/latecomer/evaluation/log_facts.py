"""Facts of one part of a log, found in one pass: how many rows, which are dirty, the times, the items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.delays.readers.row_checks import RowCheck, RowCounts, count_labels, find_first
from latecomer.delays.readers.table_source import LogSource, name_source, read_first_line
from latecomer.errors import LogError
from latecomer.evaluation.layout import LogLayout
from latecomer.evaluation.log_rows import parse_rows

MOST_ITEMS = 100_000
_SHOWN = ("decided_at", "converted_at", "action")


@dataclass(frozen=True, eq=False)
class PartFacts:
    """One file of a log, or a table."""

    counts: RowCounts
    first_dirty: str
    """The first dirty rows, in words."""
    conversions: int
    later: npt.NDArray[np.uint32]
    """The numbers of clean rows at later positions of rankings, and"""
    later_conversions: int
    """the conversions of these."""
    first: float
    last: float
    end: float
    """The last moment that a clean row mentions."""
    is_sorted: bool
    """True where rows are in the order of their decisions."""
    items: tuple[str, ...]
    least_propensity: float
    rows: npt.NDArray[np.uint32]
    """The numbers of clean rows, and"""
    keys: npt.NDArray[np.uint64]
    """the hashes of their decisions' ids, where the log has ids."""


def measure_part(source: LogSource, layout: LogLayout) -> PartFacts:
    """Read a part once, streamed."""
    rows, checks = parse_rows(source, layout)
    try:
        return _measure(rows, checks, layout)
    except pl.exceptions.PolarsError as error:
        raise LogError(f"{name_source(source)} is damaged: {read_first_line(error)}") from None


def _measure(rows: pl.LazyFrame, checks: Sequence[RowCheck], layout: LogLayout) -> PartFacts:
    counts = count_labels(rows, checks)
    clean = rows.filter(pl.col("skipped").is_null())
    query = clean.select(
        conversions=pl.col("converted").is_not_null().sum(),
        later_conversions=(pl.col("converted").is_not_null() & (pl.col("position") > 1)).sum(),
        first=pl.col("decided").min(),
        last=pl.col("decided").max(),
        end=pl.max_horizontal(pl.col("decided").max(), pl.col("converted").max()),
        backwards=(pl.col("decided").diff() < 0.0).sum(),
        least=pl.col("propensity").min(),
    )
    found = query.collect(engine="streaming").row(0, named=True)
    has_rows = found["first"] is not None
    keys = _find_keys(clean, layout)
    return PartFacts(
        counts=counts,
        first_dirty=find_first(rows, _SHOWN) if counts.skipped else "",
        conversions=found["conversions"],
        later=np.empty(0, np.uint32) if layout.position is None else _find_later(clean),
        later_conversions=found["later_conversions"],
        first=found["first"] if has_rows else np.inf,
        last=found["last"] if has_rows else -np.inf,
        end=found["end"] if has_rows else -np.inf,
        is_sorted=not found["backwards"],
        items=() if layout.offer is not None else _find_items(clean),
        least_propensity=1.0 if found["least"] is None else found["least"],
        rows=keys[0],
        keys=keys[1],
    )


def _find_items(clean: pl.LazyFrame) -> tuple[str, ...]:
    items = clean.select(pl.col("action").unique()).collect(engine="streaming")["action"]
    if len(items) > MOST_ITEMS:
        raise LogError(
            f"action must name at most {MOST_ITEMS:,} items; got {len(items):,}: is it an id of the decision? "
            "Where every round has a set of its own, log the offers"
        )
    return tuple(sorted(items.to_list()))


def _find_later(clean: pl.LazyFrame) -> npt.NDArray[np.uint32]:
    later = clean.filter(pl.col("position") > 1).select(pl.col("row").cast(pl.UInt32))
    return later.collect(engine="streaming")["row"].to_numpy()


def _find_keys(clean: pl.LazyFrame, layout: LogLayout) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    if layout.decision_id is None:
        return np.empty(0, np.uint32), np.empty(0, np.uint64)
    table = clean.select(pl.col("row").cast(pl.UInt32), "key").collect(engine="streaming")
    return table["row"].to_numpy(), table["key"].to_numpy()
