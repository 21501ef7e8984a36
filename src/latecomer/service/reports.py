"""Reports of conversions as arrays, and as the log has them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from latecomer.arguments import share
from latecomer.core.state import Integers
from latecomer.errors import InputError
from latecomer.service import events
from latecomer.service.messages import Conversion, Revocation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def arrival(occurred: Integers, now: int | Integers) -> Integers:
    """When a conversion counts as having come: when it happened, where that is said and not in the future."""
    return np.where(occurred == events.NOT_SAID, now, np.minimum(occurred, now))


def value_of(value: object, position: int) -> float:
    """A value, made certain."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    return share(f"value of conversion {position}", value)


def occurred_of(reports: Sequence[Conversion | Revocation]) -> Integers:
    """When each happened, `NOT_SAID` where it does not say."""
    return np.array([_stamp(report.occurred_at) for report in reports], np.int64)


def _stamp(moment: datetime | None) -> int:
    if moment is None:
        return events.NOT_SAID
    if not isinstance(moment, datetime):
        raise InputError(f"occurred_at must be a datetime; got {moment!r}")
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


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
