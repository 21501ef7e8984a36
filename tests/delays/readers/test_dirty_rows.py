"""Dirty rows of a log: counted by reason and skipped, the same from every source; refused where strict."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from latecomer.delays import ConversionLog, read_conversions
from latecomer.errors import FileError, InputError

HEADER = "decided_at,converted_at"
CLEAN = [f"{1_700_000_000 + s},{1_700_000_000 + s + s % 60 if s % 3 else ''}" for s in range(600)]
BEFORE = "2026-01-05T12:00:00Z,2026-01-03T12:00:00Z"
DIRTY = {
    "no decision time": [",1700000000", "NaT,"],
    "unreadable decision time": ["soon,1700000000", "2026-13-01,", "inf,"],
    "unreadable conversion time": ["1700000000,yesterday"],
    "decision time out of range": ["1700000000000,1700000001000", "-1e12,"],
    "conversion time out of range": ["1700000000,9999-12-31"],
    "conversion before decision": [BEFORE],
}


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


@pytest.fixture
def clean(tmp_path: Path) -> ConversionLog:
    return read_conversions(write(tmp_path / "clean.csv", CLEAN))


def test_one_dirty_row_does_not_refuse_a_log(tmp_path: Path, clean: ConversionLog) -> None:
    found = read_conversions(write(tmp_path / "log.csv", [*CLEAN[:300], BEFORE, *CLEAN[300:]]))
    assert found.skipped == {"conversion before decision": 1}
    assert found.counts.rows == 601
    assert found.counts.used == found.decisions == 600
    np.testing.assert_array_equal(found.curve.cdf, clean.curve.cdf)
    assert (found.first, found.last, found.until) == (clean.first, clean.last, clean.until)
    assert clean.skipped == {}


def test_every_reason_is_counted(tmp_path: Path, clean: ConversionLog) -> None:
    dirty = [row for rows in DIRTY.values() for row in rows]
    found = read_conversions(write(tmp_path / "log.csv", [*dirty, *CLEAN]))
    assert found.skipped == {reason: len(rows) for reason, rows in DIRTY.items()}
    assert str(found.counts) == (
        "10 of 610 rows skipped: 2 × no decision time, 3 × unreadable decision time, 1 × unreadable conversion time, "
        "2 × decision time out of range, 1 × conversion time out of range, 1 × conversion before decision"
    )
    np.testing.assert_array_equal(found.curve.cdf, clean.curve.cdf)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("no decision time", r"row 11 \(decided_at None, converted_at '1700000000'\)"),
        ("conversion before decision", r"row 11 \(decided_at '2026-01-05T12:00:00Z', converted_at '2026-01-03T12"),
    ],
)
def test_strict_refuses_and_names_the_first_rows(tmp_path: Path, reason: str, shown: str) -> None:
    rows = [*CLEAN[:10], DIRTY[reason][0], *CLEAN[10:20], "later,", *CLEAN[20:]]
    path = write(tmp_path / "log.csv", rows)
    with pytest.raises(FileError, match=f"must have no dirty row where reading is strict.*1 × {reason}.*{shown}"):
        read_conversions(path, strict=True)
    with pytest.raises(FileError, match=r"row 22 \(decided_at 'later', converted_at None\).*leave out --strict\)"):
        read_conversions(path, strict=True)
    assert read_conversions(write(path, CLEAN), strict=True).decisions == 600


@pytest.mark.parametrize("reason", DIRTY)
def test_a_log_of_nothing_but_dirt_is_refused_with_the_counts(tmp_path: Path, reason: str) -> None:
    path = write(tmp_path / "log.csv", DIRTY[reason] * 40)
    count = 40 * len(DIRTY[reason])
    expected = (
        f"must hold rows that can be used; {count} of {count} rows skipped: {count} × {reason}; .*; "
        "the first, counted from 1 without the header: row 1 "
    )
    with pytest.raises(FileError, match=expected):
        read_conversions(path)


def test_milliseconds_are_guessed(tmp_path: Path) -> None:
    rows = [f"{1_700_000_000_000 + s},{1_700_000_000_500 + s}" for s in range(50)]
    with pytest.raises(FileError, match=r"50 × decision time out of range.*divide milliseconds by 1000"):
        read_conversions(write(tmp_path / "both.csv", rows))
    nanoseconds = [f"{(1_700_000_000 + s) * 10**9}," for s in range(50)]
    with pytest.raises(FileError, match=r"strict; 50 of 650 .*decided_at looks like nanoseconds, divide nanosec"):
        read_conversions(write(tmp_path / "strict.csv", [*CLEAN, *nanoseconds]), strict=True)
    rows = [f"{1_700_000_000 + s},{1_700_000_000_500 + s}" for s in range(50)]
    with pytest.raises(FileError, match=r"got 0 in 10 rows; 50 of 60 rows skipped: 50 × conversion.*divide millisec"):
        read_conversions(write(tmp_path / "one.csv", [*rows, *CLEAN[:30:3]]))


@pytest.mark.parametrize(
    ("never", "shown"),
    [
        ("0", "0"),
        ("-9223372036854775808", "-9223372036854775808 (NaT as a number)"),
        ("1677-09-21T00:12:43Z", "1677-09-21T00:12:43Z (NaT as a number)"),
        ("9999-12-31", "9999-12-31"),
    ],
)
def test_a_cell_that_means_never_is_named(tmp_path: Path, never: str, shown: str) -> None:
    rows = [row + never if row.endswith(",") else row for row in CLEAN]
    found = read_conversions(write(tmp_path / "log.csv", rows))
    assert found.counts.remedy == (
        f"converted_at is {shown} in 200 of them, which probably means never: leave those cells empty"
    )
    at_once = [f"{1_700_000_000 + s},{1_700_000_000 + s if s % 3 else never}" for s in range(600)]
    with pytest.raises(FileError, match=r"any window will do; 200 of 600 rows skipped: .* probably means never"):
        read_conversions(write(tmp_path / "at-once.csv", at_once))


def test_contents_that_are_refused_are_bad_input_too(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must hold decisions; it has no row"):
        read_conversions(write(tmp_path / "log.csv", []))


def test_a_log_is_one_short_line(tmp_path: Path) -> None:
    found = read_conversions(write(tmp_path / "log.csv", [BEFORE, *CLEAN]))
    assert repr(found) == "ConversionLog(decisions=600, converted=400, over='0:09:59', longest='0:00:59', skipped=1)"


# ---- from every source the same ----


def table() -> pl.DataFrame:
    """Datetimes with a conversion before its decision, a decision at no time, and a third without conversions."""
    seconds = pl.Series(range(600))
    delay = pl.when(seconds % 3 == 0).then(None).otherwise(seconds % 60)
    frame = pl.select(decided=1_700_000_000 + seconds, delay=delay).with_columns(
        converted=pl.col("decided") + pl.col("delay")
    )
    dirty = pl.DataFrame({"decided": [1_700_000_500, None], "converted": [1_700_000_000, 1_700_000_500]})
    both = pl.concat([frame.select("decided", "converted"), dirty])
    return both.select(pl.from_epoch(pl.all(), "s").name.suffix("_at"))


class Arrow:
    """A table that speaks Arrow and nothing else."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


def as_pandas(frame: pl.DataFrame) -> Any:
    return pd.DataFrame({name: pd.to_datetime(frame[name].to_list()) for name in frame.columns})


SOURCES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "arrow": Arrow,
    "pandas": lambda frame: as_pandas(frame).assign(other=[object()] * frame.height),
    "pandas, a zone": lambda frame: as_pandas(frame).apply(lambda column: column.dt.tz_localize("UTC")),
    "pandas, another zone": lambda frame: as_pandas(frame).apply(
        lambda column: column.dt.tz_localize("UTC").dt.tz_convert("America/Sao_Paulo")
    ),
    "pandas, objects": lambda frame: as_pandas(frame).astype(object),
    "pandas, texts": lambda frame: as_pandas(frame).apply(lambda column: column.dt.strftime("%Y-%m-%dT%H:%M:%SZ")),
    "pandas, floats": lambda frame: pd.DataFrame(
        {name: frame[name].dt.epoch("s").cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in frame.columns}
    ),
    "pandas, Int64": lambda frame: pd.DataFrame(
        {name: pd.array(frame[name].dt.epoch("s").to_list(), "Int64") for name in frame.columns}
    ),
}


@pytest.mark.parametrize("form", SOURCES)
def test_tables_say_what_a_file_says(form: str, tmp_path: Path) -> None:
    table().write_csv(tmp_path / "log.csv")
    expected = read_conversions(tmp_path / "log.csv")
    found = read_conversions(SOURCES[form](table()))
    assert found.skipped == expected.skipped == {"no decision time": 1, "conversion before decision": 1}
    assert (found.decisions, found.converted, found.first) == (600, 400, expected.first)
    np.testing.assert_array_equal(found.curve.cdf, expected.curve.cdf)
    with pytest.raises(FileError, match=r"the table must have no dirty row.*row 601 \(decided_at "):
        read_conversions(SOURCES[form](table()), strict=True)


@pytest.mark.parametrize("form", ["polars", "lazy", "arrow", "pandas"])
def test_tables_that_are_refused(form: str) -> None:
    with pytest.raises(
        FileError, match=r"the table must have the columns .*; missing: converted_at; it has decided_at"
    ):
        read_conversions(SOURCES[form](table().select("decided_at")))
    with pytest.raises(FileError, match="the table must hold decisions; it has no row"):
        read_conversions(SOURCES[form](table().head(0)))
    never = table().with_columns(decided_at=pl.lit(None, pl.Datetime))
    with pytest.raises(FileError, match=r"602 of 602 rows skipped: 602 × no decision time.*give every row its decided"):
        read_conversions(SOURCES[form](never))


def test_every_reason_has_its_remedy_the_most_frequent_first(tmp_path: Path) -> None:
    dirty = ["1700000000,20/01/2026 12:00", *["1700000000,1700000000500"] * 3, *[",1700000000"] * 2]
    found = read_conversions(write(tmp_path / "log.csv", [*dirty, *CLEAN]))
    assert found.counts.remedy == (
        "write times in seconds: converted_at looks like milliseconds, divide milliseconds by 1000; "
        "give every row its decided_at; "
        "write times as seconds or ISO 8601, such as 2026-01-05T12:00:00Z (converted_at has '20/01/2026 12:00')"
    )
