"""Reports of conversions as arrays, and as the log has them."""

from collections.abc import Sequence

import numpy as np

from latecomer.core.state import Integers
from latecomer.errors import InputError
from latecomer.service.bandit import events
from latecomer.service.messages import Conversion, Revocation
from latecomer.timestamps import Moment, parse_timestamp, to_datetime
from latecomer.validation import check_conversion_value

_DAY = 86_400_000_000


def arrival(occurred: Integers, now: int | Integers) -> Integers:
    """When a conversion counts as having come: when it happened, where that is said and not in the future."""
    return np.where(occurred == events.NOT_SAID, now, np.minimum(occurred, now))


def value_of(value: object, position: int) -> float:
    """A value, made certain."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    try:
        return check_conversion_value(f"value of conversion {position}", value)
    except InputError as error:
        error.field = f"[{position}].value"
        raise


def occurred_of(reports: Sequence[Conversion | Revocation], now: int) -> Integers:
    """When each happened, `NOT_SAID` where it does not say; more than a day after `now` is refused."""
    moments = [report.occurred_at for report in reports]
    said = (events.NOT_SAID if moment is None else _occurred(moment, i, now) for i, moment in enumerate(moments))
    return np.fromiter(said, np.int64, len(moments))


def _occurred(moment: Moment, position: int, now: int) -> int:
    name = f"occurred_at of report {position}"
    try:
        stamp = parse_timestamp(moment, name=name)
    except InputError as error:
        error.field = f"[{position}].occurred_at"
        raise
    if stamp > now + _DAY:
        raise InputError(
            f"{name} must not lie more than a day ahead of the store's clock, {to_datetime(now):%Y-%m-%dT%H:%M:%SZ}; "
            f"got {to_datetime(stamp).isoformat()}: check its zone, its unit and its clock",
            field=f"[{position}].occurred_at",
        )
    return stamp


def in_store_time(occurred: Integers, shift: int) -> Integers:
    """Calendar times as stamps of a store whose time is `shift` microseconds ahead of the calendar."""
    return np.where(occurred == events.NOT_SAID, occurred, occurred + shift) if shift else occurred


def reports_of(
    dtype: np.dtype[np.void], kind: int, verdicts: Integers, rounds: Integers, occurred: Integers, now: int
) -> events.Records:
    """What the log says of them."""
    told = np.empty(len(rounds), dtype)
    told["kind"], told["verdict"], told["round"], told["stamp"], told["occurred"] = (
        kind,
        verdicts,
        rounds,
        now,
        occurred,
    )
    return told
