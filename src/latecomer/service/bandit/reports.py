"""Reports of conversions and revocations as arrays, and as the log's records."""

from collections.abc import Sequence

import numpy as np

from latecomer.core.state import Integers
from latecomer.errors import InputError
from latecomer.policies.base.baskets import digest_conversion
from latecomer.service.bandit import events
from latecomer.service.messages import Conversion, Correction, Revocation, StageReport
from latecomer.timestamps import Moment, parse_timestamp, to_datetime
from latecomer.validation import check_conversion_value

_DAY = 86_400_000_000


def compute_arrivals(occurred: Integers, now: int | Integers) -> Integers:
    """Return when each report counts as arrived: when it occurred, if that is given and not in the future."""
    return np.where(occurred == events.NOT_GIVEN, now, np.minimum(occurred, now))


def check_value(value: object, position: int) -> float:
    """Return a conversion's value, 1 where it has none; `InputError` names its position where it is not in [0, 1]."""
    if value is None:
        return 1.0
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    try:
        return check_conversion_value(f"value of conversion {position}", value)
    except InputError as error:
        error.field = f"[{position}].value"
        raise


def parse_occurrences(
    reports: Sequence[Conversion | Correction | Revocation | StageReport], *, now: int, shift: int
) -> Integers:
    """Return when each report occurred, in the store's time; `NOT_GIVEN` where it does not say.

    Parameters
    ----------
    reports
        Conversions, revocations and others; `InputError` where `occurred_at` lies more than a day in the future.
    now
        The store's time.
    shift
        Microseconds by which the store's time is ahead of the calendar, in which `occurred_at` is given.
    """
    moments = [report.occurred_at for report in reports]
    calendar = now - shift
    stamps = (
        events.NOT_GIVEN if moment is None else _parse_occurrence(moment, i, calendar) + shift
        for i, moment in enumerate(moments)
    )
    return np.fromiter(stamps, np.int64, len(moments))


def _parse_occurrence(moment: Moment, position: int, now: int) -> int:
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


def check_target(revocation: Revocation, place: int) -> None:
    """Raise `InputError` where a revocation names neither its decision nor its conversion."""
    if revocation.decision_id is None and revocation.conversion_id is None:
        raise InputError(
            f"revocation {place} must name its decision_id or its conversion_id; got neither",
            field=f"[{place}].decision_id",
        )


def digest_report(report: Conversion | Revocation, place: int) -> bytes:
    """Return the digest of a report's conversion id; `InputError` names its place where it is none."""
    try:
        return digest_conversion(report.conversion_id)
    except InputError as error:
        error.field = f"[{place}].conversion_id"
        raise


def pack_reports(
    dtype: np.dtype[np.void], kind: int, verdicts: Integers, rounds: Integers, occurred: Integers, now: int
) -> events.Records:
    """Return the log's records of reports; values, credits and digests are left to the caller."""
    records = np.empty(len(rounds), dtype)
    records["kind"], records["verdict"], records["round"] = kind, verdicts, rounds
    records["stamp"], records["occurred"] = now, occurred
    return records
