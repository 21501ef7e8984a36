"""Sources of a log: Parquet or CSV files, or a table in memory (polars, pandas, or any with an Arrow interface)."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard

import polars as pl

from latecomer.errors import InputError, LogError

NO_TIME = ("", "null", "NULL", "None", "nan", "NaN", "NaT", "<NA>")
"""Texts that stand for an empty cell."""

_PARQUET, _GZIP, _UTF16 = b"PAR1", b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")
_ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".txt")
"""Files of a folder that are read."""
_PEEKED = 1000
"""Cells of a column of objects that are looked at."""


class ArrowTable(Protocol):
    """A table that another library can read through Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand out the table as a stream of record batches."""


Table: TypeAlias = pl.DataFrame | pl.LazyFrame | ArrowTable
"""A frame of polars or pandas, a table of pyarrow, DuckDB, …"""
LogSource: TypeAlias = str | PathLike[str] | Table


def is_table(source: object) -> TypeGuard[Table]:
    """Tell a table from a path or a delay law."""
    return isinstance(source, pl.LazyFrame) or (
        not isinstance(source, type) and (_is_pandas(source) or hasattr(source, "__arrow_c_stream__"))
    )


def name_source(source: LogSource) -> str:
    """Return the log's name in messages."""
    return str(source) if isinstance(source, str | PathLike) else "the table"


def list_parts(source: LogSource) -> "list[LogSource]":
    """Return the files of a folder, and of the folders in it, in the order of their paths; any other source alone."""
    if not isinstance(source, str | PathLike) or not Path(source).is_dir():
        return [source]
    files = sorted(path for path in Path(source).rglob("*") if path.suffix.lower() in _ENDINGS and path.is_file())
    if not files:
        raise InputError(f"{source} must hold files that end in {', '.join(_ENDINGS)}; it has none")
    return [str(path) for path in files]


def scan_source(source: LogSource, needed: Sequence[str] | Mapping[str, str]) -> pl.LazyFrame:
    """Scan the columns that are needed, as they are, with the row's number from 1 in `row`.

    Parameters
    ----------
    source
        The log; the files of a folder are read one after the other.
    needed
        Columns; a mapping gives the name that a column has in the source, by the name that it is to have.
    """
    names = needed if isinstance(needed, Mapping) else {name: name for name in needed}
    parts = [_scan_part(part, names) for part in list_parts(source)]
    table = parts[0] if len(parts) == 1 else pl.concat(parts, how="vertical_relaxed")
    return table.with_row_index("row", offset=1)


def list_columns(source: LogSource) -> list[str]:
    """Return the names of a source's columns; of a folder, those of its first file."""
    return _open(list_parts(source)[0], None).collect_schema().names()


def _scan_part(source: LogSource, names: Mapping[str, str]) -> pl.LazyFrame:
    table, name = _open(source, list(names.values())), name_source(source)
    columns = table.collect_schema()
    missing = [given for given in names.values() if given not in columns]
    if missing:
        raise LogError(
            f"{name} must have the columns {', '.join(names.values())}; missing: {', '.join(missing)}; "
            f"it has {', '.join(columns)[:200]}"
        )
    return table.select(pl.col(given).alias(own) for own, given in names.items())


def _open(source: LogSource, needed: Sequence[str] | None) -> pl.LazyFrame:
    """Scan a source whose schema can be read."""
    name = name_source(source)
    try:
        table = _scan(source, needed)
        table.collect_schema()
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}; check the path") from None
    except pl.exceptions.PolarsError as error:
        raise LogError(f"{name} is neither Parquet nor CSV with a header: {read_first_line(error)}") from None
    return table


def read_first_line(error: Exception) -> str:
    """Return the first line of a message that may have many."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _scan(source: LogSource, needed: Sequence[str] | None) -> pl.LazyFrame:
    if isinstance(source, str | PathLike):
        return _scan_file(Path(source), needed)
    if isinstance(source, pl.LazyFrame):
        return source
    if _is_pandas(source):
        return _scan_pandas(source, needed)
    return pl.DataFrame(source).lazy()


def _scan_file(path: Path, needed: Sequence[str] | None) -> pl.LazyFrame:
    with path.open("rb") as file:
        head = file.readline(1 << 16)
    if not head:
        raise LogError(f"{path} is empty: it must have the columns {', '.join(needed or ['decided_at', '…'])}")
    if head.startswith(_PARQUET):
        return pl.scan_parquet(path, glob=False)
    if head.startswith(_GZIP):
        raise LogError(f"{path} is gzipped, and cannot be streamed: unpack it first, or write it as Parquet")
    if head.startswith(_UTF16):
        raise LogError(f"{path} is in UTF-16: save it as UTF-8, as CSV or Parquet")
    separator = max(",\t;", key=head.decode("utf-8", errors="replace").count)
    return pl.scan_csv(
        path, separator=separator, infer_schema=False, encoding="utf8-lossy", null_values=list(NO_TIME), glob=False
    )


def _is_pandas(source: object) -> bool:
    return hasattr(source, "iloc") and hasattr(source, "columns")


def _scan_pandas(frame: Any, needed: Sequence[str] | None) -> pl.LazyFrame:
    """Scan column by column, so that neither pandas nor pyarrow is needed here; missing columns stay missing."""
    columns = {str(name): frame[name] for name in frame.columns if needed is not None and str(name) in needed}
    if needed is None or len(columns) < len(set(needed)):
        return pl.LazyFrame(schema=[str(name) for name in frame.columns])
    return pl.LazyFrame([_convert_series(name, column) for name, column in columns.items()])


def _convert_series(name: str, column: Any) -> pl.Series:
    """Convert times and numbers by their type, lists as they are, all else to text."""
    kind = column.dtype.kind
    if kind == "M":
        return pl.Series(name, column.to_numpy(dtype="datetime64[us]"))  # in UTC where it has a zone
    if kind in "iuf":
        return pl.Series(name, column.to_numpy(dtype="float64", na_value=float("nan")))
    cells = list(column)
    if any(isinstance(cell, list | tuple | dict) for cell in cells[:_PEEKED]):
        return pl.Series(name, cells, strict=False)
    return pl.Series(name, list(_convert_texts(cells)), dtype=pl.String)


def _convert_texts(cells: Iterable[Any]) -> Iterable[str]:
    return (cell.isoformat() if hasattr(cell, "isoformat") else str(cell) for cell in cells)
