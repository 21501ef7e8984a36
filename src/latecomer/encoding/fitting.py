"""Features learnt from a sample: the scales of numbers, the levels of categories, and which of these are hashed.

Numbers are scaled robustly: the center is the median, and the scale the larger of its distances to the 5 % and the 95 %
quantile, so that nine values of ten lie in [-1, 1] and one wild value changes nothing; beyond, a value is clipped. A
missing number has no term, and so counts as the median. Categories of up to 32 levels are one-hot where all terms and
their products then have columns of their own; otherwise from the fewest levels on, as long as features take up half of
the columns at most. The others are hashed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from latecomer.core.state import Array
from latecomer.encoding.declarations import Unfitted
from latecomer.encoding.layout import count_columns, count_levels
from latecomer.encoding.spec import Feature, HashedFeature, NumberFeature, OneHotFeature
from latecomer.encoding.table import Column
from latecomer.encoding.terms import list_texts
from latecomer.encoding.values import Plain, to_plain_value
from latecomer.errors import InputError
from latecomer.validation import short_repr

MOST_LEVELS = 32
"""Levels up to which a category is one-hot, where that was not declared."""
MOST_KNOWN = 200
"""Levels of a hashed category that are remembered for explanations, the most frequent."""
_LOW, _HIGH = 0.05, 0.95

Sample = Array | list[Plain]
"""The values of one feature: doubles, NaN where one is missing; or plain values."""


def fit_features(
    features: Sequence[Feature | Unfitted],
    columns: Mapping[str, Column],
    *,
    dim: int,
    pairs: Sequence[tuple[str, str]],
) -> dict[str, Feature]:
    """Return every feature by name, with what the sample says of those that are incomplete; `pairs` are multiplied."""
    samples = {feature.name: _read_sample(feature.name, columns[feature.name]) for feature in features}
    fitted: dict[str, Feature] = {}
    undecided: list[OneHotFeature] = []
    for feature in features:
        name, sample = feature.name, samples[feature.name]
        if isinstance(feature, HashedFeature):
            fitted[name] = HashedFeature(name=name, known=_list_levels(sample)[:MOST_KNOWN])
        elif not isinstance(feature, Unfitted):
            fitted[name] = feature
        elif feature.kind == "number" or (feature.kind is None and _is_number(name, sample)):
            fitted[name] = _fit_number(name, sample)
        elif feature.kind == "one-hot":
            fitted[name] = OneHotFeature(name=name, levels=_check_levels(name, sample))
        else:
            undecided.append(OneHotFeature(name=name, levels=_check_levels(name, sample)))
    for category in _choose_one_hot(list(fitted.values()), undecided, dim=dim, pairs=pairs):
        fitted[category.name] = category
    for category in undecided:
        fitted.setdefault(category.name, HashedFeature(name=category.name, known=category.levels))
    return {name: _sort_levels(feature) for name, feature in fitted.items()}


def _choose_one_hot(
    fitted: Sequence[Feature], undecided: Sequence[OneHotFeature], *, dim: int, pairs: Sequence[tuple[str, str]]
) -> list[OneHotFeature]:
    """Return the categories to be one-hot: all, where their terms and products fit into `dim`; else the smallest."""
    small = sorted(
        (category for category in undecided if len(category.levels) <= MOST_LEVELS),
        key=lambda category: (len(category.levels), category.name),
    )
    if len(small) == len(undecided):
        columns = count_columns([*fitted, *small], pairs)
        if columns is not None and columns <= dim:
            return small
    chosen, used = [], 1 + sum(count_levels(feature) or 0 for feature in fitted)
    for category in small:
        used += len(category.levels)
        if used <= dim // 2:
            chosen.append(category)
    return chosen


def _read_sample(name: str, column: Column) -> Sample:
    if not isinstance(column, list):
        if np.isinf(column).any():
            raise InputError(f"the sample: {short_repr(name)} must be finite; got infinity", field="sample")
        return column
    return [to_plain_value(name, value, "the sample") for value in column]


def _is_number(name: str, sample: Sample) -> bool:
    """Tell numbers from categories; a mixture is refused."""
    if not isinstance(sample, list):
        return True
    kinds = {isinstance(value, float) for value in sample if value is not None}
    if len(kinds) > 1:
        raise InputError(
            f"the sample: {short_repr(name)} has numbers and other values: declare it as 'hashed' or 'one-hot', and "
            "numbers are taken as texts; or clean it",
            field="sample",
        )
    return kinds == {True}


def _fit_number(name: str, sample: Sample) -> NumberFeature:
    """Return the number with a robust scale."""
    wrong = [value for value in sample if value is not None and not isinstance(value, float)]
    if wrong:
        raise InputError(
            f"the sample: {short_repr(name)} must be a number, as declared; got {short_repr(wrong[0])}", field="sample"
        )
    values = np.array([np.nan if value is None else value for value in sample], np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        raise _make_empty_error(name)
    low, center, high = np.quantile(values, [_LOW, 0.5, _HIGH])
    scale = max(high - center, center - low)
    if scale <= 0.0:  # nine of ten values are one
        scale = float(np.abs(values - center).max()) or 1.0
    return NumberFeature(name=name, scale=float(scale), center=float(center))


def _check_levels(name: str, sample: Sample) -> list[str]:
    levels = _list_levels(sample)
    if not levels:
        raise _make_empty_error(name)
    return levels


def _list_levels(sample: Sample) -> list[str]:
    """Return the levels of a category, the most frequent first."""
    values = sample if isinstance(sample, list) else [None if np.isnan(value) else float(value) for value in sample]
    counts = Counter(text for value in values for text in list_texts(value))
    return sorted(counts, key=lambda text: (-counts[text], text))


def _sort_levels(feature: Feature) -> Feature:
    if isinstance(feature, OneHotFeature):
        return OneHotFeature(name=feature.name, levels=sorted(feature.levels))
    if isinstance(feature, HashedFeature):
        return HashedFeature(name=feature.name, known=sorted(feature.known[:MOST_KNOWN]))
    return feature


def _make_empty_error(name: str) -> InputError:
    return InputError(
        f"the sample must have values of {short_repr(name)}; it has none: declare its scale, its levels or 'hashed'",
        field="sample",
    )
