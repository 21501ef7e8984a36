"""Feature values of Python, NumPy and DataFrame rows, converted to those of JSON."""

import math
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol

import numpy as np

from latecomer.errors import InputError
from latecomer.validation import short_repr, to_plain_text

Plain = float | bool | str | list[str] | None
"""A value as JSON has it."""
Value = float | int | bool | str | None | Sequence[str]


class Row(Protocol):
    """A row of a DataFrame: it has `items`, and is no `Mapping`."""

    def items(self) -> Any:
        """Return pairs of names and values."""


FeatureRow = Mapping[str, Value] | Row

_MISSING = ("NAType", "NaTType")
"""Type names of pandas' missing values; pandas need not be installed."""
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
"""Times, of pandas too."""


def to_plain_features(features: FeatureRow, where: str) -> dict[str, Plain]:
    """Return names and values as JSON has them; errors begin with `where`.

    >>> to_plain_features({"price": np.float32(0.5), "new": np.True_, "note": float("nan")}, "context")
    {'price': 0.5, 'new': True, 'note': None}
    """
    if not isinstance(features, Mapping) and not callable(getattr(features, "items", None)):
        raise InputError(
            f"{where} must be names with values: a dict, or a row of a DataFrame; got {short_repr(features)}"
        )
    plain: dict[str, Plain] = {}
    items: Any = features.items()
    for name, value in items:
        kind = type(value)
        if type(name) is not str or name in plain:
            plain[_check_name(name, plain, where)] = to_plain_value(name, value, where)
        elif (
            value is None or kind is bool or (kind is str and value.isascii()) or (kind is float and value * 0.0 == 0.0)
        ):
            plain[name] = value  # as JSON has it, and finite
        else:
            plain[name] = to_plain_value(name, value, where)
    for name in plain:
        if not name.isascii():
            _to_plain_text(name, where)
    return plain


def _check_name(name: object, plain: dict[str, Plain], where: str) -> str:
    if not isinstance(name, str):
        raise InputError(
            f"{where} must have texts as names; got {short_repr(name)}: of a DataFrame take "
            "frame.to_dict('index'), with texts as the names of its columns"
        )
    if name in plain:
        raise InputError(f"{where} must have each name once; got {short_repr(name)} twice")
    return to_plain_text(name)


def to_plain_actions(actions: Mapping[str, FeatureRow]) -> list[tuple[str, dict[str, Plain]]]:
    """Return the ids of actions with their features, as JSON has them."""
    if not isinstance(actions, Mapping):
        raise InputError(
            f"actions must be a dict, {{id: features}}; got {type(actions).__name__}: "
            "of a DataFrame take frame.set_index(column).to_dict('index')",
            field="actions",
        )
    for id_ in actions:
        if not isinstance(id_, str):
            raise InputError(
                f"actions must have texts as ids; got {short_repr(id_)}: of a DataFrame take "
                "frame.set_index(frame.index.astype(str)).to_dict('index')",
                field="actions",
            )
    return [(to_plain_text(id_), to_plain_features(row, f"action {i}")) for i, (id_, row) in enumerate(actions.items())]


def to_plain_value(name: str, value: Any, where: str) -> Plain:
    """Return one value as JSON has it."""
    if value is None or type(value) is bool:
        return value
    if isinstance(value, str):
        return _to_plain_text(value, where)
    if isinstance(value, np.bool):
        return bool(value)
    if type(value) is float or (isinstance(value, Real | Decimal) and not isinstance(value, np.timedelta64)):
        return _to_plain_number(name, value, where)
    if type(value).__name__ in _MISSING or (isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value)):
        return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        for text in value:
            if not isinstance(text, str):
                raise _make_value_error(name, text, where)
        return [_to_plain_text(text, where) for text in value]
    raise _make_value_error(name, value, where)


def _to_plain_text(text: str, where: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{where} must be Unicode; got a lone surrogate in {ascii(text)[:100]}") from None
    return to_plain_text(text)


def _to_plain_number(name: str, value: Any, where: str) -> float | None:
    try:
        number = float(value)
    except (OverflowError, ValueError):  # an int beyond all doubles, a signalling NaN
        number = math.inf
    if math.isinf(number):
        raise InputError(f"{where}: {short_repr(name)} must be a finite number; got {str(value)[:40]}")
    return None if math.isnan(number) else number


def _make_value_error(name: str, value: object, where: str) -> InputError:
    remedy = ": send hours or days as a number, or a text such as 'monday'" if isinstance(value, _TIMES) else ""
    return InputError(
        f"{where}: {short_repr(name)} must be a number, a text, a truth value or a list of texts; "
        f"got {short_repr(value)}{remedy}"
    )
