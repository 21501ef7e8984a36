"""The two columns of a log of conversions as seconds, streamed: numbers or ISO 8601, from a file or a table."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from latecomer.delays.readers.row_checks import RowCheck, RowCounts, count_rows, label_rows
from latecomer.delays.readers.row_guesses import guess_never, guess_unit_of, quote_first_of
from latecomer.delays.readers.table_source import NO_TIME, LogSource, name_source, read_first_line, scan_source
from latecomer.errors import LogError

NEEDED = ("decided_at", "converted_at")

_FORMAT = "%Y-%m-%d %H:%M:%S%.f"
_ZONE = r"(Z|[+-]\d\d:?\d\d)$"
_FAR = 1e11  # seconds; today is 1.8e9, and 1.8e12 in milliseconds


def _is_unreadable(name: str) -> pl.Expr:
    time = pl.col(name[:-3])
    return pl.col(name).is_not_null() & (time.is_null() | time.is_infinite() | time.is_nan())


def _is_far(name: str) -> pl.Expr:
    return pl.col(name[:-3]).abs() > _FAR


_READABLE = "write times as seconds or ISO 8601, such as 2026-01-05T12:00:00Z"
_SECONDS = "write times in seconds: divide milliseconds by 1000, microseconds by a million"


def _guess_far_conversion(rows: pl.LazyFrame) -> str:
    return guess_never("converted_at")(rows) or guess_unit_of("converted_at")(rows)


TIME_CHECKS = (
    RowCheck("no decision time", pl.col("decided_at").is_null(), "give every row its decided_at"),
    *(
        RowCheck(f"unreadable {word} time", _is_unreadable(column), _READABLE, quote_first_of(column, _READABLE))
        for word, column in (("decision", "decided_at"), ("conversion", "converted_at"))
    ),
    RowCheck("decision time out of range", _is_far("decided_at"), _SECONDS, guess_unit_of("decided_at")),
    RowCheck("conversion time out of range", _is_far("converted_at"), _SECONDS, _guess_far_conversion),
    RowCheck(
        "conversion before decision",
        pl.col("converted") < pl.col("decided"),
        "check that both columns have the same clock and zone",
        guess_never("converted_at"),
    ),
)
"""Checks of a row with `decided_at` and `converted_at` as given, and `decided` and `converted` in seconds."""


@contextmanager
def read_times(
    source: LogSource, *, strict: bool, names: Mapping[str, str] | None = None
) -> Iterator[tuple[pl.LazyFrame, RowCounts]]:
    """Read `decided` and `converted` in seconds, the latter null where there was no conversion, in the log's order.

    `names` has the log's own names of the columns; where there is an `action` among them, it is read too, as text.
    Texts are read once, streamed, into a temporary Parquet file of a few bytes a row. Dirty rows are left out and
    counted; where strict, a log that has any is refused before anything is concluded from it.
    """
    name = name_source(source)
    with TemporaryDirectory(prefix="latecomer-") as folder:
        read = Path(folder, "times.parquet")
        dirty = pl.col("skipped").is_not_null()
        given = (pl.when(dirty).then(pl.col(column).cast(pl.String)).alias(column) for column in NEEDED)
        scanned = scan_source(source, names or NEEDED)
        action = [_read_action(scanned, name)] if names and "action" in names else []
        labelled = parse_times(scanned, name).with_columns(skipped=label_rows(TIME_CHECKS))
        kept = labelled.select(
            "decided", "converted", "skipped", pl.when(dirty).then("row").alias("row"), *given, *action
        )
        try:
            kept.sink_parquet(read, compression="lz4")
        except pl.exceptions.PolarsError as error:
            raise LogError(f"{name} is damaged: {read_first_line(error)}") from None
        rows = pl.scan_parquet(read)
        counts = count_rows(rows, TIME_CHECKS, name=name, shown=NEEDED, strict=strict)
        yield rows.filter(pl.col("skipped").is_null()).select("decided", "converted", *action), counts


def _read_action(table: pl.LazyFrame, name: str) -> pl.Expr:
    """Return the action as text; refuse vectors and records."""
    if (dtype := table.collect_schema()["action"]).is_nested():
        raise LogError(f"{name} must have the action as a plain value, such as a text or a number; got {dtype}")
    return pl.col("action").cast(pl.String)


def parse_times(table: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Parse `decided_at` and `converted_at` into `decided` and `converted`, seconds; null where unreadable."""
    types = table.collect_schema()
    given = table.with_columns(pl.col(column).pipe(_mark_given, types[column]).alias(column) for column in NEEDED)
    return given.with_columns(
        pl.col(column).pipe(_parse_seconds, types[column], f"{name} must have {column}").alias(column[:-3])
        for column in NEEDED
    )


def _mark_given(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Set empty cells to null: a text of nothing, and NaN, are no times."""
    if dtype == pl.String:
        text = column.str.strip_chars()
        return pl.when(text.is_in(NO_TIME)).then(None).otherwise(text)
    return column.fill_nan(None) if dtype.is_float() else column


def _parse_seconds(column: pl.Expr, dtype: pl.DataType, rule: str) -> pl.Expr:
    """Convert a column to seconds; null where a cell cannot be read."""
    if dtype == pl.String:
        return pl.coalesce(column.cast(pl.Float64, strict=False), _parse_iso(column))
    if dtype.is_numeric():
        return column.cast(pl.Float64)
    if isinstance(dtype, pl.Datetime | pl.Date):
        return column.cast(pl.Datetime("us", getattr(dtype, "time_zone", None))).dt.timestamp("us") / 1e6
    if dtype == pl.Null:  # no row has it
        return column.cast(pl.Float64)
    raise LogError(f"{rule} as numbers (seconds), times, or ISO 8601 texts; got {dtype}")


def _parse_iso(text: pl.Expr) -> pl.Expr:
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
