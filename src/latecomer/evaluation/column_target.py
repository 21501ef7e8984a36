"""A target policy whose answers are a column of the log."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from latecomer.errors import InputError
from latecomer.evaluation.batch import LogBatch
from latecomer.evaluation.plan import Plan
from latecomer.evaluation.target import Target
from latecomer.validation import short_repr


@dataclass(frozen=True)
class ColumnTarget(Target):
    """A column that says what the policy would do: an item's id, a probability of the logged action, or scores.

    Whole numbers and texts are ids (indices, where the log has offers); numbers with a point are the probability that
    the policy gives to the action that was logged; of a list of scores the best is played.
    """

    name: str
    column: str

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The column itself."""
        return (self.column,)

    def plan(self, batch: LogBatch) -> Plan:
        """Read the column of these rounds."""
        cells = batch.column(self.column)
        if cells.null_count():
            self._refuse(batch, cells.is_null(), "something in every row")
        if isinstance(cells.dtype, pl.List | pl.Array):
            return self._read_scores(batch, cells)
        if batch.items and self._is_ids(batch, cells):
            places = cells.cast(pl.String).replace_strict(list(batch.items), list(range(len(batch.items))), default=-1)
            return self._read_index(batch, places.cast(pl.Int64))
        if not batch.items and cells.dtype.is_integer():
            return self._read_index(batch, cells.cast(pl.Int64))
        return self._read_chances(batch, cells.cast(pl.Float64, strict=False))

    def _is_ids(self, batch: LogBatch, cells: pl.Series) -> bool:
        return cells.dtype.is_integer() or (cells.dtype == pl.String and bool(cells.is_in(batch.items).any()))

    def _read_index(self, batch: LogBatch, index: pl.Series) -> Plan:
        wrong = (index < 0) | (index >= pl.Series(batch.sizes))
        if wrong.any():
            self._refuse(batch, wrong, "an action of the log in every row")
        return Plan(index=index.to_numpy())

    def _read_chances(self, batch: LogBatch, chances: pl.Series) -> Plan:
        wrong = ~chances.is_between(0.0, 1.0 + 1e-9).fill_null(value=False) | chances.is_nan()
        if wrong.any():
            self._refuse(batch, wrong, "actions, or probabilities of the logged action, in [0, 1]")
        return Plan(of_chosen=chances.to_numpy())

    def _read_scores(self, batch: LogBatch, cells: pl.Series) -> Plan:
        listed = cells.arr.to_list() if isinstance(cells.dtype, pl.Array) else cells
        wrong = listed.list.len().cast(pl.Int64) != pl.Series(batch.sizes)
        if wrong.any():
            self._refuse(batch, wrong, "a score for each action")
        return Plan(index=listed.list.arg_max().to_numpy().astype(np.int64))

    def _refuse(self, batch: LogBatch, wrong: pl.Series, rule: str) -> None:
        row = int(wrong.arg_max() or 0)
        cell = batch.column(self.column)[row]
        raise InputError(
            f"column {self.column!r}, of policy {self.name!r}, must have {rule}; row {batch.rows[row]} of the log has "
            f"{short_repr(cell)}"
        )
