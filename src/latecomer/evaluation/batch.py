"""Rows of a log as arrays: what was chosen, among what, with which probability, and what came of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.core.state import Integers
from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation.layout import LogLayout


@dataclass(frozen=True, eq=False)
class LogBatch:
    """Some rounds, a row each."""

    table: pl.DataFrame
    layout: LogLayout
    items: tuple[str, ...]
    rows: Integers
    """Numbers of the rows in their file, from 1."""
    decided: Floats
    """Times in seconds."""
    delay: Floats
    """Seconds up to the conversion; infinite where there is none."""
    action: Integers
    """The index of the chosen action: of the item, or in the round's own offer."""
    propensity: Floats
    value: Floats
    """The value of the conversion, where there is one."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def sizes(self) -> Integers:
        """K, the number of actions of each round."""
        if self.items:
            return np.full(len(self), len(self.items), np.int64)
        return self.table["offer"].list.len().to_numpy().astype(np.int64)

    @cached_property
    def starts(self) -> Integers:
        """The place at which each round's actions begin, in a list of all rounds' actions."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @cached_property
    def examination(self) -> Floats:
        """The probability that the action's position was looked at; 1 where the log does not say."""
        return self.table["examination"].to_numpy().astype(np.float64)

    @cached_property
    def features(self) -> Floats:
        """The features of all rounds' actions, one after the other; of items, an indicator each."""
        if self.items:
            return np.tile(np.eye(len(self.items)), (len(self), 1))
        flat = self.table["offer"].explode(empty_as_null=False)
        if isinstance(flat.dtype, pl.Struct):
            raise InputError("actions must be lists of numbers for this; got records: encode them first")
        lengths = flat.list.len().to_numpy()
        if len(np.unique(lengths)) > 1:
            raise InputError(f"actions must have as many features in all rounds; got {sorted(set(lengths.tolist()))}")
        return flat.explode(empty_as_null=False).to_numpy().astype(np.float64).reshape(len(flat), -1)

    def offers(self) -> Iterator[Any]:
        """Yield each round's actions: the item ids, a (K, d) array, or a list of records."""
        if self.items:
            every = list(self.items)
            yield from (every for _ in range(len(self)))
        elif isinstance(self.table["offer"].dtype.inner, pl.Struct):  # type: ignore[attr-defined]
            yield from self.table["offer"].to_list()
        else:
            stops = self.starts + self.sizes
            for start, stop in zip(self.starts.tolist(), stops.tolist(), strict=True):
                yield self.features[start:stop]

    def contexts(self) -> Iterator[Any]:
        """Yield each round's context: a dictionary of columns, or the cell of the only one.

        Objects and lists that are written as JSON, as the service exports them, are read.
        """
        columns = self.layout.context
        cells = [_read_cells(self.column(column)) for column in columns]
        if self.layout.is_context_whole:
            yield from cells[0]
            return
        if not cells:
            yield from ({} for _ in range(len(self)))
        for row in zip(*cells, strict=True):
            yield dict(zip(columns, row, strict=True))

    def column(self, name: str) -> pl.Series:
        """Return a column of the source that was read as context."""
        return self.table[f"context:{name}"]

    def take(self, mask: npt.NDArray[np.bool_]) -> "LogBatch":
        """Return the rows of a mask."""
        arrays = {name: getattr(self, name)[mask] for name in ("rows", "decided", "delay", "action", "propensity")}
        return LogBatch(self.table.filter(mask), self.layout, self.items, **arrays, value=self.value[mask])


def _read_cells(cells: pl.Series) -> list[Any]:
    if cells.dtype != pl.String:
        return cells.to_list()
    return [_read_json(text) if text is not None and text[:1] in ("{", "[") else text for text in cells]


def _read_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def make_batch(table: pl.DataFrame, layout: LogLayout, items: Sequence[str]) -> LogBatch:
    """Make arrays of clean rows."""
    decided, converted = table["decided"].to_numpy(), table["converted"].fill_null(np.inf).to_numpy()
    return LogBatch(
        table,
        layout,
        tuple(items),
        rows=table["row"].to_numpy().astype(np.int64),
        decided=decided,
        delay=converted - decided,
        action=table["action"].to_numpy().astype(np.int64),
        propensity=np.minimum(table["propensity"].fill_null(np.nan).to_numpy(), 1.0),
        value=table["value"].fill_null(0.0).to_numpy(),
    )
