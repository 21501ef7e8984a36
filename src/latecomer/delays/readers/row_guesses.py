"""Guesses from dirty rows of a log: a cell that stands for "never", times in another unit than seconds, or as texts."""

from collections.abc import Callable

import polars as pl

from latecomer.timestamps import PER_SECOND, guess_unit

_NAT = "-9223372"
"""The first digits of NaT as a number, whatever its unit; read as a time, it is in the year 1677."""
_MANY = 10
"""Rows that share a cell which is neither 0 nor NaT, before it is thought to mean never."""


def guess_never(column: str) -> Callable[[pl.LazyFrame], str]:
    """Make a guess that names the cell which most of the rows share: probably it means never."""

    def guess(rows: pl.LazyFrame) -> str:
        cells = rows.group_by(column).len().sort("len", descending=True).head(1)
        total, (cell, count) = rows.select(pl.len()).collect().item(), cells.collect(engine="streaming").row(0)
        is_nat = _is_nat(str(cell))
        is_known = is_nat or str(cell) in ("0", "0.0") or str(cell).startswith("1970-01-01")
        if 2 * count <= total or not (is_known or count >= _MANY):
            return ""
        shown = f"{cell:.40} (NaT as a number)" if is_nat else f"{cell:.40}"
        return f"{column} is {shown} in {count:,} of them, which probably means never: leave those cells empty"

    return guess


def guess_unit_of(column: str) -> Callable[[pl.LazyFrame], str]:
    """Make a guess at the unit of times, from the first of the rows."""

    def guess(rows: pl.LazyFrame) -> str:
        number = rows.select(pl.col(column).cast(pl.Float64, strict=False)).head(1).collect().item()
        unit = None if number is None else guess_unit(number)
        if unit is None:
            return ""
        return f"write times in seconds: {column} looks like {unit}, divide {unit} by {PER_SECOND[unit]}"

    return guess


def quote_first_of(column: str, remedy: str) -> Callable[[pl.LazyFrame], str]:
    """Make a guess that adds the first of the cells to a remedy, so that it can be looked for."""

    def guess(rows: pl.LazyFrame) -> str:
        cell = rows.sort("row").select(column).head(1).collect().item()
        return f"{remedy} ({column} has {cell!r:.40})"

    return guess


def _is_nat(cell: str) -> bool:
    return cell.replace(".", "").startswith(_NAT) or cell.startswith("1677-09-21")
