"""Logs of conversions: every form they come in, what they say of delays, and what is refused."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from latecomer import delays
from latecomer.delays import ConversionLog, DelayLaw, read_conversions
from latecomer.delays.distribution import Floats
from latecomer.errors import FileError, InputError

START = 1_700_000_000.0
DAY = 86_400.0


def table(law: DelayLaw, *, decisions: int, days: float, rate: float, seed: int = 0) -> pl.DataFrame:
    """A log as it stands when watching ends: whole seconds, shuffled."""
    rng = np.random.default_rng(seed)
    decided = np.floor(START + rng.uniform(0.0, days * DAY, decisions))
    converted = decided + law.sample(rng, decisions)
    seen = (rng.random(decisions) < rate) & (converted <= START + days * DAY)
    return pl.DataFrame(
        {"decided_at": decided, "converted_at": pl.Series(np.where(seen, converted, np.nan)).fill_nan(None)}
    )


def share(log: ConversionLog, age: float) -> float:
    return float(log.curve.cdf[np.searchsorted(log.curve.ends, age)])


@pytest.fixture(scope="module")
def small() -> pl.DataFrame:
    return table(delays.LogNormal(3600, 1.5), decisions=4000, days=3, rate=0.3)


@pytest.fixture(scope="module")
def expected(small: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Floats:
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    small.write_parquet(path)
    return read_conversions(path).curve.cdf


def iso(zone: timezone, template: str) -> pl.Expr:
    def text(seconds: float) -> str:
        return datetime.fromtimestamp(seconds, zone).strftime(template)

    return pl.all().map_elements(text, return_dtype=pl.String)


TIMES = pl.from_epoch(pl.all().cast(pl.Int64), "s")


@pytest.mark.parametrize(
    ("form", "suffix"),
    [
        (pl.all(), "csv"),
        (pl.all().cast(pl.Int64), "csv"),
        (pl.all().cast(pl.Int64), "parquet"),
        (pl.all().fill_null(float("nan")), "parquet"),
        (iso(UTC, "%Y-%m-%dT%H:%M:%SZ"), "csv"),
        (iso(UTC, "%Y-%m-%d %H:%M:%S.%f"), "csv"),
        (iso(timezone(timedelta(hours=-5, minutes=-30)), "%Y-%m-%dT%H:%M:%S%z"), "csv"),
        (iso(timezone(timedelta(hours=2)), "%Y-%m-%d %H:%M:%S+02:00"), "parquet"),
        (TIMES, "parquet"),
        (TIMES.cast(pl.Datetime("ms")), "parquet"),
        (TIMES.dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"), "parquet"),
    ],
    ids=["floats", "ints", "ints-pq", "nan", "Z", "no zone", "west", "east", "times", "ms", "zoned"],
)
def test_read_conversions_is_the_same_for_every_file_format(
    form: pl.Expr, suffix: str, small: pl.DataFrame, expected: Floats, tmp_path: Path
) -> None:
    path = tmp_path / f"log.{suffix}"
    written = small.select(form).with_columns(other=pl.lit("x,y"))
    written.write_parquet(path) if suffix == "parquet" else written.write_csv(path)
    log = read_conversions(path)
    np.testing.assert_allclose(log.curve.cdf, expected, rtol=1e-9)
    assert log.decisions == 4000
    assert log.first == small["decided_at"].min()


@pytest.mark.parametrize("separator", ["\t", ";"])
def test_read_conversions_takes_other_separators_and_orders(
    separator: str, small: pl.DataFrame, expected: Floats, tmp_path: Path
) -> None:
    path = tmp_path / "log.txt"
    small.sort("decided_at", descending=True).select("converted_at", "decided_at").write_csv(path, separator=separator)
    np.testing.assert_allclose(read_conversions(path).curve.cdf, expected, rtol=1e-9)


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("quote", [b"", b'"'], ids=["bare", "quoted"])
def test_read_conversions_takes_dialects_of_csv(before: bytes, end: bytes, quote: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log[1]*.csv"  # no pattern, a name
    cells = [(b"decided_at", b"converted_at"), *((b"%d" % s, b"%d" % (s + 1 + s % 60)) for s in range(500))]
    path.write_bytes(before + end.join(b",".join(quote + cell + quote for cell in row) for row in cells))
    log = read_conversions(path)
    assert (log.decisions, log.converted, log.curve.ends[-1]) == (500, 500, 60.0)


def test_read_conversions_takes_minutes_and_days(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("decided_at,converted_at\n" + "2026-01-05,2026-01-05T12:30\n" * 40)
    log = read_conversions(path)
    assert log.curve.ends[-1] == 12.5 * 3600
    assert log.only_positives


@pytest.mark.parametrize("logs", [4, pytest.param(10, marks=pytest.mark.soak)])
def test_curve_of_a_log_is_unbiased(logs: int, tmp_path: Path) -> None:
    """Half of the conversions of a law like Criteo's take more than three days: a log of 40 days cuts many off."""
    law = delays.Criteo(seconds_per_round=1)
    path = tmp_path / "log.parquet"
    marks = [3600.0, DAY, 7 * DAY]
    errors = []
    for seed in range(logs):
        table(law, decisions=200_000, days=40, rate=0.1, seed=seed).write_parquet(path)
        log = read_conversions(path, marks=marks)
        longest = log.curve.ends[-1]
        truth = np.array([law.cdf(mark) for mark in marks]) / law.cdf(longest)
        errors.append([share(log, mark) - true for mark, true in zip(marks, truth, strict=True)])
        assert log.conversion_rate == pytest.approx(0.1 * law.cdf(longest), rel=0.03)
    assert np.abs(np.mean(errors, axis=0)).max() < 0.005


@pytest.mark.parametrize(("logs", "most"), [(40, 0.0045), pytest.param(100, 0.003, marks=pytest.mark.soak)])
def test_a_short_log_is_not_biased_by_its_own_longest_delay(logs: int, most: float, tmp_path: Path) -> None:
    """Ten days of delays that take up to thirty; with the longest counted, the mean errors are −0.006 to −0.008."""
    law = delays.Criteo(seconds_per_round=1)
    path = tmp_path / "log.parquet"
    marks = [3600.0, DAY, 4 * DAY]
    errors = []
    for seed in range(logs):
        table(law, decisions=20_000, days=10, rate=0.1, seed=seed).write_parquet(path)
        log = read_conversions(path, marks=marks)
        errors.append([share(log, mark) - law.cdf(mark) / law.cdf(log.curve.ends[-1]) for mark in marks])
    assert np.abs(np.mean(errors, axis=0)).max() < most


def test_a_window_at_a_mark_keeps_delays_of_exactly_that_age(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"{s},{s + delay}" for s in range(0, 30_000, 10) for delay in ((3600,) if s % 20 else (7200,))]
    path.write_text("\n".join(["decided_at,converted_at", *rows]))
    log = read_conversions(path, until=60_000, marks=[3599, 3600])
    assert share(log, 3600) == pytest.approx(0.5, abs=0.01)
    assert share(log, 3599) < 0.01


def test_an_earlier_end_of_watching_is_the_log_as_it_was_then(small: pl.DataFrame, tmp_path: Path) -> None:
    until = START + 2 * DAY
    late = pl.when(pl.col("converted_at") <= until).then(pl.col("converted_at"))
    then = small.filter(pl.col("decided_at") <= until).with_columns(late)
    small.write_parquet(tmp_path / "now.parquet")
    then.write_parquet(tmp_path / "then.parquet")
    now = read_conversions(tmp_path / "now.parquet", until=until)
    np.testing.assert_array_equal(now.curve.cdf, read_conversions(tmp_path / "then.parquet", until=until).curve.cdf)
    assert now.decisions == then.height
    assert now.converted == then["converted_at"].count()


FORMS: dict[str, Callable[[float], Any]] = {
    "seconds": float,
    "text": lambda seconds: datetime.fromtimestamp(seconds, UTC).isoformat(),
    "datetime": lambda seconds: datetime.fromtimestamp(seconds, UTC),
    "Timestamp": lambda seconds: pd.Timestamp(seconds, unit="s", tz="UTC").tz_convert("Europe/Oslo"),
}


@pytest.mark.parametrize("form", FORMS)
def test_until_and_longest_take_every_form_of_a_time(small: pl.DataFrame, form: str) -> None:
    until, longest = START + 2 * DAY, timedelta(hours=6)
    found = read_conversions(small, until=until, longest=longest.total_seconds())
    for span in (longest, "6h", np.timedelta64(6, "h"), pd.Timedelta(longest)):
        again = read_conversions(small, until=FORMS[form](until), longest=span)
        assert again.until == until
        np.testing.assert_array_equal(again.curve.cdf, found.curve.cdf)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"until": pd.NaT}, "until must be .*; got NaT: this is no time"),
        ({"until": START * 1000}, "until must be .*it looks like milliseconds, divide it by 1000"),
        ({"until": "soon"}, "until must be .*; got 'soon'"),
        ({"longest": "soon"}, "longest must be .*; got 'soon'"),
        ({"longest": 0}, "longest, in seconds, must be above 0 and finite; got 0"),
        ({"longest": None, "until": []}, r"until must be .*; got \[\]"),
    ],
)
def test_until_and_longest_that_are_no_times_are_refused(
    small: pl.DataFrame, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_conversions(small, **given)


def test_positives_alone_have_the_same_delays(small: pl.DataFrame, tmp_path: Path) -> None:
    small.write_parquet(tmp_path / "all.parquet")
    small.drop_nulls().write_parquet(tmp_path / "positives.parquet")
    until = START + 3 * DAY
    every = read_conversions(tmp_path / "all.parquet", until=until)
    positives = read_conversions(tmp_path / "positives.parquet", until=until)
    np.testing.assert_array_equal(every.curve.cdf, positives.curve.cdf)
    assert positives.only_positives
    assert not every.only_positives


def test_read_conversions_leaves_out_ages_with_few_watched_decisions(tmp_path: Path) -> None:
    """One conversion after the whole length of the log would halve everything below it."""
    quick = [(s, s + 10 + s % 50) for s in range(1, 2000)]
    path = tmp_path / "log.csv"
    rows = [f"{start},{end}" for start, end in [(0, 2000), *quick]]
    path.write_text("\n".join(["decided_at,converted_at", *rows]))
    log = read_conversions(path)
    assert log.curve.at_risk[-1] >= 25
    assert share(log, 60) > 0.95


HEADER = "decided_at,converted_at\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: it must have the columns decided_at, converted_at"),
        (HEADER, "must hold decisions; it has no row"),
        ("decided_at,when\n1,2\n", "must have the columns .*; missing: converted_at; it has decided_at, when"),
        (HEADER + "1,2\n2,\n", "must hold at least 30 conversions up to the end of watching; got 1 in 2 rows"),
        (HEADER + "7,7\n" * 40, "every conversion came at once"),
        (HEADER + "7,8\n7,8,9\n", "is damaged: found more fields"),
    ],
)
def test_read_conversions_refuses_logs_that_cannot_be_estimated(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(FileError, match=message):
        read_conversions(path)


def test_read_conversions_refuses_columns_that_are_no_times(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({"decided_at": [[1.0]], "converted_at": [2.0]}).write_parquet(path)
    with pytest.raises(FileError, match=r"must have decided_at as numbers .* got List"):
        read_conversions(path)


def test_read_conversions_takes_an_empty_column_for_no_conversion(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({"decided_at": [1.0, 2.0], "converted_at": [None, None]}).write_parquet(path)
    with pytest.raises(FileError, match="got 0 in 2 rows"):
        read_conversions(path)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, InputError, "cannot be read: No such file"),
        (b"\x1f\x8bxxxx", FileError, "is gzipped, and cannot be streamed: unpack it first"),
        (b"PAR1xxxx", FileError, "neither Parquet nor CSV"),
    ],
)
def test_read_conversions_refuses_files_that_are_no_logs(
    content: bytes | None, error: type[Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=message):
        read_conversions(path)


def test_read_conversions_refuses_a_damaged_parquet_file(small: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    small.write_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    with pytest.raises(FileError, match="is damaged"):
        read_conversions(path)
