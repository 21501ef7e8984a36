"""The two columns of a log of conversions as seconds, streamed: Parquet or CSV, numbers or ISO 8601."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from latecomer.errors import FileError, InputError

NEEDED = ("decided_at", "converted_at")

_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"
_NO_TIME = ("", "null", "NULL", "None", "nan", "NaN", "NaT")
_FORMAT = "%Y-%m-%d %H:%M:%S%.f"
_ZONE = r"(Z|[+-]\d\d:?\d\d)$"
_FAR = 1e11  # seconds; today is 1.8e9, and 1.8e12 in milliseconds


@contextmanager
def times(path: str | PathLike[str]) -> Iterator[pl.LazyFrame]:
    """`decided` and `converted` in seconds, the latter null where there was no conversion, in the file's order.

    Texts are read once, streamed, into a temporary Parquet file of a few bytes a row. A log with a cell that is not a
    time is refused, before anything is concluded from it.
    """
    with TemporaryDirectory(prefix="latecomer-") as folder:
        read = Path(folder, "times.parquet")
        strange = (pl.when(_bad(name)).then(pl.col(name).cast(pl.String)).alias(name) for name in NEEDED)
        try:
            _scan(path).select("decided", "converted", *strange).sink_parquet(read, compression="lz4")
        except pl.exceptions.PolarsError as error:
            raise FileError(f"{path} is damaged: {_first_line(error)}") from None
        rows = pl.scan_parquet(read)
        _refuse(path, rows)
        yield rows.select("decided", "converted")


def _scan(path: str | PathLike[str]) -> pl.LazyFrame:
    """The two columns as they are, and in seconds, null where they cannot be read."""
    path = Path(path)
    try:
        table = _table(path)
        names = table.collect_schema()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; check the path") from None
    except pl.exceptions.PolarsError as error:
        raise FileError(f"{path} is neither Parquet nor CSV with a header: {_first_line(error)}") from None
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise FileError(
            f"{path} must have the columns {', '.join(NEEDED)}; missing: {', '.join(missing)}; "
            f"it has {', '.join(names)[:200]}"
        )
    given = table.select(pl.col(name).pipe(_given, names[name]).alias(name) for name in NEEDED)
    seconds = [pl.col(name).pipe(_seconds, path, name, names[name]).alias(name[:-3]) for name in NEEDED]
    return given.with_columns(seconds)


def _refuse(path: str | PathLike[str], rows: pl.LazyFrame) -> None:
    facts = (
        rows.select(
            pl.len().alias("rows"),
            (pl.col("decided").is_null() & pl.col("decided_at").is_null()).sum().alias("missing"),
            *(pl.col(name).count().alias(f"{name}_bad") for name in NEEDED),
            *(pl.col(name).drop_nulls().first().alias(f"{name}_first") for name in NEEDED),
            *(pl.col(name[:-3]).abs().max().alias(f"{name}_far") for name in NEEDED),
        )
        .collect(engine="streaming")
        .row(0, named=True)
    )
    if not facts["rows"]:
        raise FileError(f"{path} must hold decisions; it has no row")
    if facts["missing"]:
        raise FileError(f"{path} must have decided_at in every row; {facts['missing']:,} have none")
    for name in NEEDED:
        if facts[f"{name}_bad"]:
            raise FileError(
                f"{path} must have {name} in seconds or ISO 8601, such as 2026-01-05T12:00:00Z; "
                f"{facts[f'{name}_bad']:,} rows have other, the first of them {facts[f'{name}_first']!r:.60}"
            )
        if (facts[f"{name}_far"] or 0.0) > _FAR:
            raise FileError(
                f"{path} must have {name} in seconds; got {facts[f'{name}_far']:.6g}, which would be in the year 5000: "
                "divide milliseconds by 1000, microseconds by a million"
            )


def _table(path: Path) -> pl.LazyFrame:
    with path.open("rb") as file:
        head = file.readline(1 << 16)
    if not head:
        raise FileError(f"{path} is empty: it must have the columns {', '.join(NEEDED)}")
    if head.startswith(_PARQUET):
        return pl.scan_parquet(path, glob=False)
    if head.startswith(_GZIP):
        raise FileError(f"{path} is gzipped, and cannot be streamed: unpack it first, or write it as Parquet")
    separator = max(",\t;", key=head.decode("utf-8", errors="replace").count)
    return pl.scan_csv(
        path, separator=separator, infer_schema=False, encoding="utf8-lossy", null_values=list(_NO_TIME), glob=False
    )


def _given(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """What a cell holds, or null: an empty text and NaN are no times."""
    if dtype == pl.String:
        text = column.str.strip_chars()
        return pl.when(text.is_in(_NO_TIME)).then(None).otherwise(text)
    return column.fill_nan(None) if dtype.is_float() else column


def _seconds(column: pl.Expr, path: Path, name: str, dtype: pl.DataType) -> pl.Expr:
    """Null where it cannot be read."""
    if dtype == pl.String:
        return pl.coalesce(column.cast(pl.Float64, strict=False), _iso(column))
    if dtype.is_numeric():
        return column.cast(pl.Float64)
    if isinstance(dtype, pl.Datetime | pl.Date):
        return column.cast(pl.Datetime("us", getattr(dtype, "time_zone", None))).dt.timestamp("us") / 1e6
    if dtype == pl.Null:  # no row has it
        return column.cast(pl.Float64)
    raise FileError(f"{path} must have {name} as numbers (seconds), times, or ISO 8601 texts; got {dtype}")


def _iso(text: pl.Expr) -> pl.Expr:
    body = text.str.replace(_ZONE, "").str.replace("T", " ", literal=True)
    rest = (
        pl.when(body.str.len_bytes() == 10).then(pl.lit(" 00:00:00")).otherwise(pl.lit(":00"))
    )  # a day, or no seconds
    full = pl.when(body.str.len_bytes() <= 16).then(body + rest).otherwise(body)
    time = full.str.to_datetime(_FORMAT, time_unit="us", strict=False)
    zone = text.str.extract(_ZONE).str.replace("Z", "+0000", literal=True).str.replace(":", "", literal=True)
    hours, minutes = zone.str.slice(1, 2).cast(pl.Float64), zone.str.slice(3, 2).cast(pl.Float64)
    ahead = pl.when(zone.str.starts_with("-")).then(-1.0).otherwise(1.0) * (hours * 3600.0 + minutes * 60.0)
    return time.dt.timestamp("us") / 1e6 - ahead.fill_null(0.0)


def _bad(name: str) -> pl.Expr:
    time = pl.col(name[:-3])
    return pl.col(name).is_not_null() & (time.is_null() | time.is_infinite() | time.is_nan())


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
