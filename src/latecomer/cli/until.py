"""The options --since and --until: the first decision of a log that counts, and when its watching ended."""

from datetime import datetime

from latecomer.errors import InputError


def parse_until(text: str | None, *, name: str = "--until") -> datetime | None:
    """Parse seconds since 1970, or ISO 8601."""
    from latecomer.timestamps import parse_timestamp, to_datetime  # noqa: PLC0415 - brings NumPy

    if text is None:
        return None
    try:
        moment: float | str = float(text)
    except ValueError:
        moment = text
    try:
        return to_datetime(parse_timestamp(moment, name=name))
    except InputError:
        if isinstance(moment, float):
            raise
        raise InputError(f"{name} must be seconds, or ISO 8601 such as 2026-02-01T00:00:00Z; got {text!r}") from None
