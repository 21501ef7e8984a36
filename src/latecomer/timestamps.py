"""Times as callers give them, made microseconds since 1970. Every time that comes in is read here.

A time without a zone is UTC, whatever the machine's own zone is; a day without a time is its midnight.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import NoReturn

import numpy as np

from latecomer.errors import InputError
from latecomer.validation import short_repr

Moment = datetime | date | str | np.datetime64 | float
"""A `datetime` (pandas.Timestamp is one), an ISO 8601 text, a numpy.datetime64, or seconds since 1970."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = EPOCH.replace(tzinfo=None)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // _MICROSECOND
_LATEST = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - EPOCH) // _MICROSECOND
_EARLIEST_SECOND, _LATEST_SECOND = float(_EARLIEST // 10**6), float(_LATEST // 10**6)

_ISO = re.compile(r"\d{4}-?\d\d-?\d\d(?:[T ]|$)", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d*)?", re.ASCII)
_MISSING = frozenset({"", "none", "null", "nan", "nat", "na", "<na>"})
_FINER = ("ns", "ps", "fs", "as")
"""Units of NumPy that are shorter than a microsecond."""
PER_SECOND = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_LATEST_GUESS = 4_102_444_800
"""The year 2100: what comes out between 1970 and then was counted in that unit."""
_SECONDS_A_YEAR = 31_556_952


def parse_timestamp(moment: Moment, *, name: str = "at") -> int:
    """Give a time in microseconds since 1970.

    Parameters
    ----------
    moment
        A `datetime`, an ISO 8601 text, a `date`, a numpy.datetime64, a pandas.Timestamp, or seconds since 1970; UTC
        where it has no zone. In the years 1 to 9999.
    name
        What an error calls it.

    Examples
    --------
    >>> parse_timestamp("2026-01-05T12:00:00Z") == parse_timestamp(1767614400) == parse_timestamp("2026-01-05 12:00")
    True
    >>> parse_timestamp(1767614400000)
    Traceback (most recent call last):
        ...
    latecomer.errors.InputError: at must be a time in the years 1 to 9999, such as seconds since 1970; got \
1767614400000, which is in the year 57,983: it looks like milliseconds, divide it by 1000
    """
    if type(moment) is float and _EARLIEST_SECOND <= moment <= _LATEST_SECOND:  # most are; NaN is not
        return round(moment * 1e6)
    if type(moment) is datetime:
        if (zone := moment.tzinfo) is UTC:
            return (moment - EPOCH) // _MICROSECOND
        if zone is None:
            return (moment - _NAIVE_EPOCH) // _MICROSECOND
    if type(moment) is int and _EARLIEST_SECOND <= moment <= _LATEST_SECOND:
        return round(moment * 1e6)
    if isinstance(moment, datetime):
        return _from_datetime(moment, name)
    if isinstance(moment, np.datetime64):
        return _from_numpy(moment, name)
    if isinstance(moment, str):
        return _from_text(moment, name)
    if isinstance(moment, date):
        return _from_datetime(datetime.combine(moment, time()), name)
    if isinstance(moment, bool | np.timedelta64) or not isinstance(moment, int | float | np.integer | np.floating):
        _refuse(moment, name)
    return _from_seconds(moment, name)


def parse_datetime(moment: Moment | None, *, name: str) -> datetime | None:
    """Give a time as a `datetime` in UTC; None, which is no time, stays None."""
    return None if moment is None else to_datetime(parse_timestamp(moment, name=name))


def to_datetime(timestamp: int) -> datetime:
    """Give microseconds since 1970 as a `datetime` in UTC."""
    return EPOCH + timedelta(microseconds=timestamp)


def guess_unit(number: float) -> str | None:
    """Name the unit, a key of `PER_SECOND`, that a number too large for seconds was probably counted in.

    >>> guess_unit(1767614400000), guess_unit(1767614400)
    ('milliseconds', None)
    """
    if not _LATEST_SECOND < number < 1e19:
        return None
    return next((unit for unit, per in PER_SECOND.items() if number / per <= _LATEST_GUESS), None)


def _from_datetime(moment: datetime, name: str) -> int:
    if type(moment) is not datetime:
        if moment != moment:  # pandas.NaT is a datetime, and not itself
            _refuse(moment, name)
        moment = datetime(  # without what a subclass adds: pandas.Timestamp has nanoseconds, and bounds of its own
            *(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond),
            tzinfo=moment.tzinfo,
            fold=moment.fold,
        )
    if moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    return _check_range((moment - EPOCH) // _MICROSECOND, moment, name)


def _from_numpy(moment: np.datetime64, name: str) -> int:
    if np.isnat(moment):
        _refuse(moment, name)
    is_finer = np.datetime_data(moment.dtype)[0] in _FINER
    found = (moment.astype("datetime64[us]") if is_finer else moment).item()
    if not isinstance(found, date):  # NumPy gives a number where Python has no such year
        _refuse_far(moment, name)
    return parse_timestamp(found, name=name)


def _from_text(text: str, name: str) -> int:
    """Read ISO 8601; of 13 digits, which are milliseconds, Python alone would make a day of the year 1767."""
    if not _ISO.match(text):
        _refuse(text, name)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        _refuse(text, name)
    return _from_datetime(found, name)


def _from_seconds(seconds: float, name: str) -> int:
    if seconds != seconds:
        _refuse(seconds, name)
    if not _EARLIEST_SECOND <= seconds <= _LATEST_SECOND:
        _refuse_far(seconds, name, guess=_guess(seconds))
    return round(float(seconds) * 1e6)


def _guess(seconds: float) -> str:
    """Say where a number lies, and which unit it was probably counted in."""
    unit = guess_unit(seconds)
    if unit is None:
        return ""
    year = 1970 + int(seconds) // _SECONDS_A_YEAR
    return f", which is in the year {year:,}: it looks like {unit}, divide it by {PER_SECOND[unit]}"


def _check_range(timestamp: int, moment: object, name: str) -> int:
    if not _EARLIEST <= timestamp <= _LATEST:
        _refuse_far(moment, name)
    return timestamp


def _refuse_far(moment: object, name: str, *, guess: str = "") -> NoReturn:
    raise InputError(
        f"{name} must be a time in the years 1 to 9999, such as seconds since 1970; got {short_repr(moment)}{guess}",
        field=name,
    )


def _refuse(moment: object, name: str) -> NoReturn:
    remedy = ""
    if str(moment).strip().lower() in _MISSING:
        remedy = ": this is no time; leave out rows without a conversion, and times that are not known"
    elif isinstance(moment, str) and _NUMBER.fullmatch(moment) and (unit := guess_unit(float(moment))):
        remedy = f": it looks like {unit}; divide it by {PER_SECOND[unit]}, and give the number without quotes"
    elif isinstance(moment, str):
        remedy = ": write it as 2026-01-05T12:00:00Z, and a number without quotes"
    raise InputError(
        f"{name} must be a datetime, an ISO 8601 text, a numpy.datetime64 or seconds since 1970; "
        f"got {short_repr(moment)}{remedy}",
        field=name,
    )
