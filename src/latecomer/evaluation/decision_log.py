"""A log of decisions with their propensities and conversions, of any size: scanned again whenever it is needed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.delays.readers.row_checks import RowCounts
from latecomer.evaluation.batch import LogBatch, make_batch
from latecomer.evaluation.layout import LogLayout
from latecomer.evaluation.log_rows import LATER_POSITION, keep_first_positions, kept_columns, parse_rows
from latecomer.evaluation.logged_decisions import yield_logged_decisions
from latecomer.policies.base.learning import LoggedDecisions
from latecomer.timestamps import to_datetime

ROWS_PER_BATCH = 100_000
LEARNT_AT_ONCE = 20_000
"""Rows whose offers are expanded at once."""
_ROWS_PER_RANGE = 500_000


class Engine(Protocol):
    """A place to run tasks: it yields (number, result) as they are done, in any order. `DaskEngine` is one."""

    def map(self, play: Callable[[int], Any], runs: int) -> Iterator[tuple[int, Any]]:
        """Run tasks 0 … runs − 1."""


def run_tasks(engine: Engine | None, task: Callable[[int], Any], count: int) -> list[Any]:
    """Run tasks 0 … count − 1, here or on an engine; their results in order."""
    if engine is None:
        return [task(number) for number in range(count)]
    done = dict(engine.map(task, count))
    return [done[number] for number in range(count)]


@dataclass(frozen=True, eq=False, repr=False)
class DecisionLog:
    """Decisions, each with its propensity and perhaps its conversion; `read_log` makes one."""

    name: str
    layout: LogLayout
    parts: tuple[Any, ...]
    """The files, or the table."""
    counts: RowCounts
    """Rows read, and skipped by reason."""
    items: tuple[str, ...]
    """The ids of all items; none where every round has its own offer."""
    decisions: int
    """Clean rows up to `until`."""
    conversions: int
    """Decisions that have converted, at whatever age."""
    first: float
    """The time of the first decision, in seconds."""
    last: float
    """The time of the last decision, in seconds."""
    until: float
    """When watching ended, in seconds."""
    later: int
    """Decisions at later positions of rankings, and"""
    later_conversions: int
    """those of them that have converted."""
    least_propensity: float
    is_sorted: bool
    duplicates: tuple[npt.NDArray[np.uint32], ...] = field(default=())
    """Rows of each part to skip, for their id was there before."""
    since: float = -np.inf
    """The earliest decision of this part of the log."""
    before: float = np.inf
    """The end of this part of the log: later decisions do not belong to it."""
    has_first_positions_alone: bool = False

    def __repr__(self) -> str:
        times = " to ".join(str(to_datetime(round(time * 1e6)))[:19] for time in (self.first, self.last))
        actions = f"items={len(self.items)}" if self.items else "offers"
        return (
            f"DecisionLog(decisions={self.decisions}, conversions={self.conversions}, {actions}, decided='{times}', "
            f"skipped={self.counts.rows - self.counts.used})"
        )

    @property
    def skipped(self) -> dict[str, int]:
        """Rows that were left out, by reason: dirty ones, and, for an evaluation, later positions of rankings."""
        later = {LATER_POSITION: self.later} if self.has_first_positions_alone else {}
        return self.counts.skipped | later

    @property
    def has_propensities(self) -> bool:
        """True where the log says with which probability each action was chosen."""
        return self.layout.propensity is not None

    @property
    def is_closed(self) -> bool:
        """True where conversions come at once, so that every round is closed."""
        return self.layout.converted is not None

    def with_context(self, columns: Sequence[str]) -> "DecisionLog":
        """Return the log with more columns of its source as context."""
        new = tuple(column for column in columns if column not in self.layout.context)
        return replace(self, layout=replace(self.layout, context=(*self.layout.context, *new))) if new else self

    def first_positions(self) -> "DecisionLog":
        """Return the decisions that were made by themselves and the first of each ranking; others count as skipped.

        They alone have the propensity of a choice: what is at a later position depends on what is before it.
        """
        if not self.later or self.has_first_positions_alone:
            return self
        return replace(
            self,
            decisions=self.decisions - self.later,
            conversions=self.conversions - self.later_conversions,
            has_first_positions_alone=True,
        )

    def cut(self, *, since: float = -np.inf, before: float = np.inf) -> "DecisionLog":
        """Return the decisions from one time up to another, in seconds; watching ends when it did."""
        return replace(self, since=max(since, self.since), before=min(before, self.before))

    def scan(self, part: int) -> pl.LazyFrame:
        """Scan the clean rows of a part, in the part's own order."""
        rows, _ = parse_rows(self.parts[part], self.layout)
        clean = rows.filter(pl.col("skipped").is_null()).select(kept_columns(self.layout))
        if self.duplicates and len(repeated := self.duplicates[part]):
            clean = clean.filter(~pl.col("row").is_in(pl.Series(repeated).implode()))
        clean = clean.filter(pl.col("decided") <= self.until)
        if self.has_first_positions_alone:
            clean = keep_first_positions(clean)
        if np.isfinite(self.since) or np.isfinite(self.before):
            clean = clean.filter((pl.col("decided") >= self.since) & (pl.col("decided") < self.before))
        early = pl.when(pl.col("converted") <= self.until).then(pl.col("converted"))
        index = pl.col("action").cast(pl.Enum(self.items)).to_physical().cast(pl.Int64) if self.items else "action"
        return clean.with_columns(converted=early, action=index)

    def batches(self, part: int, *, rows: int = ROWS_PER_BATCH) -> Iterator[LogBatch]:
        """Yield the rows of a part in arrays, in the part's own order."""
        for table in self.scan(part).collect_batches(chunk_size=rows, engine="streaming"):
            yield make_batch(table, self.layout, self.items)

    def ordered_batches(self, *, rows: int = ROWS_PER_BATCH) -> Iterator[LogBatch]:
        """Yield all rows in arrays, in the order of their decisions; ties keep the order of the log.

        A log in another order is scanned once for every half a million rows, each time for a range of time.
        """
        if self.is_sorted:
            for part in range(len(self.parts)):
                yield from self.batches(part, rows=rows)
            return
        every = pl.concat([self.scan(part).with_columns(part=pl.lit(part)) for part in range(len(self.parts))])
        times = every.select("decided").collect(engine="streaming")["decided"].to_numpy()
        ranges = -(-len(times) // _ROWS_PER_RANGE)
        edges = np.unique(np.quantile(times, np.arange(1, ranges) / ranges, method="lower")).tolist()
        lows, highs = [-np.inf, *edges], [*edges, np.inf]
        for low, high in zip(lows, highs, strict=True):
            within = (pl.col("decided") >= low) & (pl.col("decided") < high)
            table = every.filter(within).collect(engine="streaming").sort("decided", "part", "row").drop("part")
            for start in range(0, len(table), rows):
                yield make_batch(table[start : start + rows], self.layout, self.items)

    def count_features(self) -> int:
        """Return the dimension of the log's actions: the number of its items, or of an action's numbers."""
        if self.items:
            return len(self.items)
        return int(next(self.batches(0, rows=1)).features.shape[1])

    def logged_decisions(self, dim: int, *, encoder: Any = None, scale: float = 1.0) -> Iterator[LoggedDecisions]:
        """Yield the decisions in the order of time, as `LinearPolicy.learn` takes them."""
        return yield_logged_decisions(self.ordered_batches(rows=LEARNT_AT_ONCE), dim, encoder=encoder, scale=scale)
