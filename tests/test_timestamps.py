"""Times that come in: one reading of every dress, and nonsense refused with the rule, the value and the remedy."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.errors import InputError
from latecomer.timestamps import parse_timestamp, to_datetime

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
STAMP = 1_767_614_400_000_000


class NoZone(tzinfo):
    """A zone that does not know its offset."""

    def __repr__(self) -> str:
        return "NoZone()"  # without its address: every worker calls the test the same

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return None

    def dst(self, at: datetime | None) -> timedelta | None:
        return None

    def tzname(self, at: datetime | None) -> str | None:
        return None


@pytest.mark.parametrize(
    "moment",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON.replace(tzinfo=NoZone()),
        NOON.astimezone(ZoneInfo("Europe/Oslo")),
        STAMP // 10**6,
        STAMP / 1e6,
        np.int64(STAMP // 10**6),
        np.float64(STAMP / 1e6),
        "2026-01-05T12:00:00Z",
        "2026-01-05T12:00:00",
        "2026-01-05 12:00",
        "2026-01-05T13:00:00.000000+01:00",
        "20260105T120000Z",
        np.datetime64("2026-01-05T12", "h"),
        np.datetime64("2026-01-05T12:00:00", "s"),
        np.datetime64("2026-01-05T12:00:00", "us"),
        np.datetime64("2026-01-05T12:00:00", "ns"),
        np.array(["2026-01-05T12:00:00"], "datetime64[ns]")[0],
        pd.Timestamp(NOON),
        pd.Timestamp("2026-01-05T12:00:00"),
        pd.Timestamp("2026-01-05T12:00:00", tz="UTC").tz_convert("America/New_York"),
        pd.Timestamp("2026-01-05T12:00:00.000000999"),  # nanoseconds are dropped
    ],
    ids=repr,
)
def test_parse_timestamp_reads_a_time_in_every_form(moment: Any) -> None:
    assert parse_timestamp(moment) == STAMP


@pytest.mark.parametrize(
    "day", [date(2026, 1, 5), "2026-01-05", np.datetime64("2026-01-05"), pd.Timestamp("2026-01-05")], ids=repr
)
def test_parse_timestamp_reads_a_day_as_its_midnight(day: Any) -> None:
    assert parse_timestamp(day) == STAMP - 12 * 3600 * 10**6


def test_parse_timestamp_tells_the_two_hours_of_a_clock_change_apart() -> None:
    first, again = (datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Oslo"), fold=fold) for fold in (0, 1))
    assert parse_timestamp(again) - parse_timestamp(first) == 3600 * 10**6
    assert parse_timestamp(pd.Timestamp(again)) == parse_timestamp(again)


@given(st.datetimes(timezones=st.just(UTC)))
def test_to_datetime_inverts_parse_timestamp(moment: datetime) -> None:
    assert to_datetime(parse_timestamp(moment)) == moment
    assert parse_timestamp(np.datetime64(moment.replace(tzinfo=None))) == parse_timestamp(moment)
    assert parse_timestamp(moment.isoformat()) == parse_timestamp(moment)


MISSING = [pd.NaT, pd.NA, np.datetime64("NaT"), np.datetime64("NaT", "ns"), float("nan"), np.float64("nan"), None]


@pytest.mark.parametrize("moment", [*MISSING, "", "NaT", "nan", "None"], ids=repr)
def test_parse_timestamp_refuses_missing_values_with_the_remedy(moment: Any) -> None:
    with pytest.raises(InputError, match=r"^bought must be a .* since 1970; got .*: .*leave out rows without a conver"):
        parse_timestamp(moment, name="bought")


@pytest.mark.parametrize(
    "moment",
    [True, np.True_, [1.0], {}, b"2026", timedelta(1), np.timedelta64(1, "s"), pd.Timedelta(1), 1j, np.zeros(())],
    ids=repr,
)
def test_parse_timestamp_refuses_what_is_no_time(moment: Any) -> None:
    with pytest.raises(InputError, match=r"^at must be a datetime, an ISO 8601 text, .*; got"):
        parse_timestamp(moment)


@pytest.mark.parametrize(
    "text",
    [
        "noon",
        "1767614400",
        "2026-13-05T12:00:00Z",
        "2026-01-05x12:00",
        "05.01.2026",
        "01/05/2026",
    ],
)
def test_a_text_that_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=rf"got '{text}': write it as 2026-01-05T12:00:00Z, and a number without quo"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("text", "unit", "divisor"),
    [
        ("1767614400000", "milliseconds", 1000),
        ("1767614400000.5", "milliseconds", 1000),
        ("1712011501234", "milliseconds", 1000),  # which Python alone reads as 12:34 of 15 January 1712
        ("1767614400000000", "microseconds", 1_000_000),
        ("1767614400000000000", "nanoseconds", 1_000_000_000),
    ],
)
def test_the_unit_of_a_number_in_quotes_is_guessed_at_once(text: str, unit: str, divisor: int) -> None:
    remedy = f": it looks like {unit}; divide it by {divisor}, and give the number without quotes"
    with pytest.raises(InputError, match=rf"^at must be a datetime, .*; got '{text}'{remedy}$"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("number", "unit", "divisor"),
    [(10**3, "milliseconds", 1000), (10**6, "microseconds", 1_000_000), (10**9, "nanoseconds", 1_000_000_000)],
)
@pytest.mark.parametrize("kind", [int, float, np.int64, np.float64])
def test_parse_timestamp_guesses_another_unit(number: int, unit: str, divisor: int, kind: Any) -> None:
    with pytest.raises(
        InputError,
        match=rf"^at must be a time in the years 1 to 9999, .* in the year [\d,]+: it looks like {unit}, divide it by "
        rf"{divisor}$",
    ):
        parse_timestamp(kind(STAMP // 10**6 * number))


def test_milliseconds_are_in_the_year_58000() -> None:
    with pytest.raises(InputError, match="in the year 57,983: it looks like milliseconds"):
        parse_timestamp(STAMP // 1000)


@pytest.mark.parametrize(
    "moment",
    [
        253_402_300_800,
        -62_135_596_801,
        1e300,
        10**400,
        float("inf"),
        float("-inf"),
        np.datetime64(10**13, "s"),
        np.datetime64(2**62, "s"),
        np.datetime64("10000-01-01"),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))),
        "0001-01-01T00:00:00+05:00",
    ],
    ids=repr,
)
def test_times_beyond_the_year_9999_are_refused(moment: Any) -> None:
    with pytest.raises(InputError, match=r"^at must be a time in the years 1 to 9999, such as seconds since 1970; got"):
        parse_timestamp(moment)


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59.999999Z", 253_402_300_799, -62_135_596_800, date(1, 1, 1)])
def test_parse_timestamp_takes_the_ends_of_the_calendar(moment: Any) -> None:
    assert to_datetime(parse_timestamp(moment)).year in (1, 9999)
