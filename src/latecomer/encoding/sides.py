"""The two sides of a row, context and action: rows and columns of features as terms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from latecomer.core.state import Array
from latecomer.encoding.spec import Feature, NumberFeature, Scale
from latecomer.encoding.table import Column
from latecomer.encoding.terms import (
    MOST_REMEMBERED,
    NO_TERM,
    FeatureTerms,
    HashedTerms,
    NumberTerms,
    Term,
    TermNumbers,
    Terms,
    join_terms,
    make_feature_terms,
    stack_terms,
)
from latecomer.encoding.values import Plain, to_plain_value
from latecomer.errors import InputError
from latecomer.validation import short_repr, suggest

CONTEXT, ACTION = b"c", b"a"
"""The first byte of a side's terms."""
TABLE = "the table"
"""The beginning of errors about a table."""
_TEXTS, _TRUTHS = {str, type(None)}, {bool, type(None)}
"""Types of columns whose values are told apart by themselves."""


class OpenSide:
    """A side on which any name is a feature, and each is hashed."""

    def __init__(self, side: bytes, scales: Mapping[str, Scale]) -> None:
        self._side, self._scales = side, scales
        self._texts = TermNumbers(side)
        self._numbers: dict[str, NumberTerms] = {}

    def read_rows(self, rows: Sequence[Mapping[str, Plain]], where: str) -> Terms:
        """Return the terms of rows; slots are of no feature."""
        return stack_terms(read_each(self._read_row, rows, where))

    def _read_row(self, features: Mapping[str, Plain], where: str) -> list[Term]:
        terms: list[Term] = []
        for name in sorted(features):  # sums of doubles depend on their order
            value = features[name]
            if isinstance(value, float) or name in self._scales:
                terms += (self._numbers.get(name) or self._add_number(name)).read(value, where)
            elif type(value) is str:
                terms.append((self._texts.find(name, value), 1.0, 0))
            elif value is not None:
                terms += HashedTerms(self._texts, name).read(value, where)
        return terms

    def _add_number(self, name: str) -> NumberTerms:
        if len(self._numbers) >= MOST_REMEMBERED:
            self._numbers.clear()
        found = self._numbers[name] = NumberTerms(self._side, name, self._scales.get(name))
        return found


class DeclaredSide:
    """A side of declared features; a name that is left out of a row is missing, another name is refused."""

    def __init__(self, side: bytes, features: Sequence[Feature]) -> None:
        numbers = TermNumbers(side)
        self._features = {feature.name: make_feature_terms(side, numbers, feature) for feature in features}
        self._slots = np.arange(len(features))

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self._features)

    def read_rows(self, rows: Sequence[Mapping[str, Plain]], where: str) -> Terms:
        """Return the terms of rows: one slot for each feature, unless a list of texts needs more."""
        found = read_each(self._read_row, rows, where)
        if all(len(terms) == 1 for row in found for terms in row):
            return stack_terms([[terms[0] for terms in row] for row in found], self._slots)
        parts = [stack_terms([row[index] for row in found]) for index in range(self.size)]
        return join_terms(parts, len(rows))

    def _read_row(self, features: Mapping[str, Plain], where: str) -> list[Sequence[Term]]:
        """Return the terms of each feature; at least one, of weight 0 where it has none."""
        if not features.keys() <= self._features.keys():
            raise self._make_name_error(features, where)
        return [feature.read(features.get(name), where) or NO_TERM for name, feature in self._features.items()]

    def read_columns(self, columns: Mapping[str, Column], rows: slice) -> Terms:
        """Return the terms of a part of a table's rows."""
        parts = [_read_column(feature, name, columns[name][rows]) for name, feature in self._features.items()]
        return join_terms(parts, rows.stop - rows.start)

    def _make_name_error(self, features: Mapping[str, Plain], where: str) -> InputError:
        name = next(name for name in features if name not in self._features)
        return InputError(
            f"{where}: {short_repr(name)} is none of the features {', '.join(self._features) or '(there are none)'}"
            f"{suggest(name, self._features) or ': leave it out, or declare it'}"
        )


def read_each(read: Callable[[Any, str], Any], rows: Iterable[Any], where: str) -> list[Any]:
    """Read every row of a side; an error says which, and has it as its field."""
    position, found = 0, []
    try:
        for position, row in enumerate(rows):
            found.append(read(row, where if where == "context" else f"{where} {position}"))
    except InputError as error:
        error.field = where if where == "context" else f"actions[{position}]"
        raise
    return found


def _read_column(feature: FeatureTerms, name: str, column: Column) -> Terms:
    """Return the terms of one feature: of numbers at once, of other values once for each that is different."""
    if isinstance(feature, NumberTerms) and isinstance(column, np.ndarray) and feature.scale is not None:
        return _read_numbers(feature, feature.scale, column)
    values = column if isinstance(column, list) else column.tolist()
    kinds = set(map(type, values))
    keys: list[Any] = values if kinds <= _TEXTS or kinds <= _TRUTHS else [_to_key(value) for value in values]
    different = dict(zip(keys, values, strict=True))
    places = {key: place for place, key in enumerate(different)}
    codes = np.fromiter(map(places.__getitem__, keys), np.int64, len(keys))
    levels = stack_terms([feature.read(to_plain_value(name, value, TABLE), TABLE) for value in different.values()])
    return Terms(levels.numbers[codes], levels.weights[codes], levels.levels[codes], levels.features)


def _to_key(value: Any) -> tuple[type, Any]:
    """Return what tells values apart: True is not 1, and lists can be hashed."""
    kind = type(value)
    return kind, tuple(value) if kind is list or kind is np.ndarray else value


def _read_numbers(feature: NumberTerms, scale: Scale | NumberFeature, column: Array) -> Terms:
    if np.isinf(column).any():
        raise InputError(f"{TABLE}: {short_repr(feature.name)} must be a finite number; got inf")
    weights = np.clip((column - scale.center) / scale.scale, -1.0, 1.0)
    weights[np.isnan(weights)] = 0.0
    numbers = np.full((len(column), 1), feature.number, np.uint64)
    return Terms(numbers, weights[:, None], np.zeros((len(column), 1), np.int64), np.zeros(1, np.int64))
