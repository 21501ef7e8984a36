"""Tables as columns: frames of polars and pandas, tables of any library with an Arrow interface, and lists of rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from latecomer.core.state import Array
from latecomer.encoding.values import FeatureRow
from latecomer.errors import InputError
from latecomer.extras import explain_missing_package
from latecomer.validation import short_repr

Column = Array | list[Any]
"""Doubles, NaN where a value is missing; or any values."""
Table = Any
"""A frame of polars or pandas, a table with an Arrow interface, or a sequence of rows."""


def is_frame(source: object) -> bool:
    """Tell a table with columns from rows."""
    return not isinstance(source, type) and (
        _is_pandas(source) or hasattr(source, "__arrow_c_stream__") or hasattr(source, "collect_schema")
    )


def read_columns(source: Table, names: Sequence[str], *, where: str) -> tuple[dict[str, Column], int]:
    """Return the columns of these names, and the number of rows; errors call the table `where`."""
    if not is_frame(source):
        rows = [dict(row.items()) for row in read_rows(source, where=where)]
        return {name: [row.get(name) for row in rows] for name in names}, len(rows)
    frame = open_frame(source)
    wanted, columns = list(names), [str(name) for name in frame.columns]
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise InputError(
            f"{where} must have the columns {', '.join(wanted)}; missing: {', '.join(missing)}; "
            f"it has {', '.join(columns)[:200]}",
            field=where,
        )
    if len(set(columns)) < len(columns):
        raise InputError(f"{where} must have each column once; got {', '.join(columns)[:200]}", field=where)
    return {name: _to_column(frame[name]) for name in wanted}, len(frame)


def read_rows(source: Table, *, where: str) -> list[FeatureRow]:
    """Return the rows of a table, or of {id: row}, as they are."""
    if is_frame(source):
        frame = open_frame(source)
        return list(frame.to_dict("records") if _is_pandas(frame) else frame.to_dicts())
    if isinstance(source, Mapping):
        return list(source.values())
    if not isinstance(source, Sequence) or isinstance(source, str | bytes):
        raise InputError(
            f"{where} must be rows, {{name: value}} each, or a table; got {short_repr(source)}", field=where
        )
    return list(source)


def open_frame(source: Any) -> Any:
    """Return a frame of pandas or polars."""
    if _is_pandas(source):
        return source
    with explain_missing_package("a table that is not of pandas"):
        import polars as pl  # noqa: PLC0415 - rows need no polars
    return source.collect() if isinstance(source, pl.LazyFrame) else pl.DataFrame(source)


def _is_pandas(source: object) -> bool:
    return hasattr(source, "iloc") and hasattr(source, "columns")


def _to_column(column: Any) -> Column:
    values = column.to_numpy()
    if values.dtype.kind in "iuf":
        doubles: Array = values.astype(np.float64)
        return doubles
    return list(column.to_list())
