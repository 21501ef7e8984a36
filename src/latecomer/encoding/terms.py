"""Terms of one feature's values: each has a number, a weight, and a level.

A text `red` under `colour` is the term `colour=red`; so is each text of a list, all of them together with the weight of
one; a truth value is the text `true` or `false`. A number is the term of its name, its weight (x - center) / scale, at
least -1 and at most 1. None is missing: no term. A one-hot feature has no term for a level that it does not know.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.encoding.hashing import Numbers, hash_term
from latecomer.encoding.spec import Feature, HashedFeature, NumberFeature, OneHotFeature, Scale
from latecomer.encoding.values import Plain
from latecomer.errors import InputError
from latecomer.validation import short_repr

MOST_REMEMBERED, LONGEST_REMEMBERED = 1 << 14, 100
"""Terms whose numbers a side remembers, and characters of such a term's text: some 8 MB."""

Term = tuple[int, float, int]
"""Number, weight, level."""
NO_TERM: tuple[Term] = ((0, 0.0, 0),)
"""A slot that stays empty."""


class Terms(NamedTuple):
    """The terms of n rows in slots, (n, slots) each; a weight of 0 stands for no term."""

    numbers: Numbers
    weights: Array
    levels: Integers
    features: Integers
    """The feature of each slot; all rows have the same."""


class FeatureTerms(Protocol):
    """The terms of one feature."""

    def read(self, value: Plain, where: str, /) -> Sequence[Term]:
        """Return the terms of a value; errors begin with `where`."""


class NumberTerms:
    """A number in its scale; without one it must be in [-1, 1]."""

    def __init__(self, side: bytes, name: str, scale: Scale | NumberFeature | None) -> None:
        self.name, self.scale = name, scale
        self.number = hash_term(side, name)

    def read(self, value: Plain, where: str) -> Sequence[Term]:
        """Return the one term of a number."""
        if value is None:
            return ()
        if not isinstance(value, float):
            raise InputError(f"{where}: {short_repr(self.name)} must be a number, as declared; got {short_repr(value)}")
        scale = self.scale
        if scale is not None:
            value = min(1.0, max(-1.0, (value - scale.center) / scale.scale))
        elif abs(value) > 1.0:
            raise self._make_size_error(value, where)
        return ((self.number, value, 0),)

    def _make_size_error(self, value: float, where: str) -> InputError:
        name = short_repr(self.name)
        return InputError(
            f"{where}: {name} must have a declared scale, or be in [-1, 1]; got {value:g}: create the bandit "
            f'with features {{{name}: {{"scale": the size that it seldom exceeds}}}}, or send a label as a text'
        )


class TermNumbers:
    """The numbers of a side's terms, remembered up to a bound: to hash one takes longer than to encode it."""

    def __init__(self, side: bytes) -> None:
        self._side = side
        self._known: dict[tuple[str, str], int] = {}

    def find(self, name: str, text: str) -> int:
        """Return the number of the term `name=text`."""
        key = (name, text)
        number = self._known.get(key)
        if number is None:
            number = hash_term(self._side, name, text)
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            if len(text) <= LONGEST_REMEMBERED:
                self._known[key] = number
        return number


class HashedTerms:
    """A category of any levels."""

    def __init__(self, numbers: TermNumbers, name: str) -> None:
        self._numbers, self._name = numbers, name

    def read(self, value: Plain, _where: str, /) -> Sequence[Term]:
        """Return the term of a text, or of each text of a list."""
        if isinstance(value, str):
            return ((self._numbers.find(self._name, value), 1.0, 0),)
        texts = list_texts(value)
        return [(self._numbers.find(self._name, text), len(texts) ** -0.5, 0) for text in texts]


class OneHotTerms:
    """A category of known levels."""

    def __init__(self, side: bytes, feature: OneHotFeature) -> None:
        self._levels = {
            text: ((hash_term(side, feature.name, text), 1.0, level),) for level, text in enumerate(feature.levels)
        }

    def read(self, value: Plain, _where: str, /) -> Sequence[Term]:
        """Return the terms of the texts that are known."""
        if isinstance(value, str):
            return self._levels.get(value, ())
        texts = list_texts(value)
        weight = len(texts) ** -0.5 if texts else 0.0
        known = (self._levels[text][0] for text in texts if text in self._levels)
        return [(number, weight, level) for number, _, level in known]


def make_feature_terms(side: bytes, numbers: TermNumbers, feature: Feature) -> FeatureTerms:
    """Return the terms of a declared feature."""
    if isinstance(feature, NumberFeature):
        return NumberTerms(side, feature.name, feature)
    if isinstance(feature, HashedFeature):
        return HashedTerms(numbers, feature.name)
    return OneHotTerms(side, feature)


def list_texts(value: Plain) -> Sequence[str]:
    """Return the texts of a category's value, a list as a set in its order; 17 and 17.0 are both the text 17."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return sorted(set(value))
    if isinstance(value, bool):
        return ("true" if value else "false",)
    return (str(int(value)) if value.is_integer() else repr(value),)


def stack_terms(rows: Sequence[Sequence[Term]], features: Integers | None = None) -> Terms:
    """Return the terms of rows in slots; `features` are the slots', and else all slots are of feature 0."""
    counts = [len(row) for row in rows]
    most = max(counts, default=0)
    if min(counts, default=0) < most:
        rows = [[*row, *NO_TERM * (most - len(row))] for row in rows]
    numbers, weights, levels = zip(*chain.from_iterable(rows), strict=True) if most else ((), (), ())
    shape = (len(rows), most)
    return Terms(
        np.array(numbers, np.uint64).reshape(shape),
        np.array(weights, np.float64).reshape(shape),
        np.array(levels, np.int64).reshape(shape),
        np.zeros(most, np.int64) if features is None else features,
    )


def join_terms(parts: Sequence[Terms], count: int) -> Terms:
    """Return the slots of features side by side; each part is of one feature, and has `count` rows."""
    if not parts:
        return stack_terms([()] * count)
    slots = [part.numbers.shape[1] for part in parts]
    return Terms(
        np.concatenate([part.numbers for part in parts], axis=1),
        np.concatenate([part.weights for part in parts], axis=1),
        np.concatenate([part.levels for part in parts], axis=1),
        np.repeat(np.arange(len(parts)), slots),
    )
