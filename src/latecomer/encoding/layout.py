"""The columns of an encoder: one for the constant, own ones where there is room, shared ones for hashed terms.

A group is a feature, or a pair of features that are multiplied. A number has one term, a one-hot feature one for each
level, and a pair every product of the two; a hashed feature, and a pair with one, has terms without end. Numbers and
one-hot features always have columns of their own. Pairs get their own from the smallest on, as long as half of all
columns remain for hashed terms; where every group fits, all have their own, and nothing is hashed.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from latecomer.core.state import Integers
from latecomer.encoding.hashing import MIN_COLUMNS
from latecomer.encoding.spec import EncoderSpec, Feature, HashedFeature, OneHotFeature
from latecomer.errors import InputError

HASHED = -1
"""In place of a first column: the group's terms are hashed."""
ABSENT = 0
"""In place of a first column: the features are not multiplied. Column 0, the constant's, is written last."""

Pair = tuple[str, str]


class Named(Protocol):
    """A feature, or one that is yet to be fitted."""

    @property
    def name(self) -> str:
        """Its name."""


class Layout(NamedTuple):
    """First columns by feature and by pair of features, or `HASHED` or `ABSENT`; hashed terms have the last columns."""

    dim: int
    context: Integers
    actions: Integers
    crossed: Integers
    """Of a context's feature (row) with an action's (column)."""
    within: Integers
    """Of two features of the action."""
    action_sizes: Integers
    hash_start: int
    hash_count: int
    groups: int
    """The number of groups: the square of a row's divisor, less 1."""


def count_levels(feature: Feature) -> int | None:
    """Return the number of terms of a feature; None where there is no end of them."""
    if isinstance(feature, HashedFeature):
        return None
    return len(feature.levels) if isinstance(feature, OneHotFeature) else 1


def count_columns(features: Sequence[Feature], pairs: Sequence[Pair]) -> int | None:
    """Return the dimension in which every term has a column of its own; None where there is none."""
    sizes = {feature.name: count_levels(feature) for feature in features}
    groups = [*sizes.values(), *(_multiply(sizes[one], sizes[other]) for one, other in pairs)]
    finite = [size for size in groups if size is not None]
    return None if len(finite) < len(groups) else 1 + sum(finite)


def list_pairs(interactions: list[Pair] | None, context: Sequence[Named], actions: Sequence[Named]) -> list[Pair]:
    """Return the pairs of features that are multiplied: those given, or all of both sides."""
    if interactions is not None:
        return interactions
    return [(one.name, other.name) for one in context for other in actions]


def make_layout(spec: EncoderSpec) -> Layout:
    """Give every group its columns; `InputError` where `dim` is too small for them."""
    context, actions = spec.context or [], spec.actions or []
    pairs = list_pairs(spec.interactions, context, actions)
    sizes = {feature.name: count_levels(feature) for feature in (*context, *actions)}
    firsts, used = _place_features([*context, *actions], spec.dim)
    whole = count_columns([*context, *actions], pairs)
    limit = spec.dim if whole is not None and whole <= spec.dim else spec.dim // 2
    pair_firsts = dict.fromkeys(pairs, HASHED)
    for pair in sorted(pairs, key=lambda pair: (_multiply(sizes[pair[0]], sizes[pair[1]]) or 0, pair)):
        size = _multiply(sizes[pair[0]], sizes[pair[1]])
        if size is not None and used + size <= limit:
            pair_firsts[pair], used = used, used + size
    is_hashed = HASHED in firsts.values() or HASHED in pair_firsts.values()
    if is_hashed and spec.dim - used < MIN_COLUMNS:
        raise make_room_error(spec.dim, used + MIN_COLUMNS)
    return Layout(
        dim=spec.dim,
        context=np.array([firsts[feature.name] for feature in context], np.int64),
        actions=np.array([firsts[feature.name] for feature in actions], np.int64),
        crossed=_tabulate(context, actions, pair_firsts),
        within=_tabulate(actions, actions, pair_firsts),
        action_sizes=np.array([sizes[feature.name] or 1 for feature in actions], np.int64),
        hash_start=used,
        hash_count=spec.dim - used if is_hashed else 0,
        groups=len(sizes) + len(pairs),
    )


def make_room_error(dim: int, needed: int) -> InputError:
    """Return the error for a `dim` that is too small."""
    return InputError(
        f"dim must be at least {needed}, for the columns of numbers and one-hot features and two for hashed terms; "
        f"got {dim}: raise it, or declare features with many levels as 'hashed'",
        field="dim",
    )


def _place_features(features: Sequence[Feature], dim: int) -> tuple[dict[str, int], int]:
    """Return the first column of every feature, and the number of columns used."""
    firsts, used = {}, 1
    for feature in features:
        size = count_levels(feature)
        firsts[feature.name] = HASHED if size is None else used
        used += size or 0
    if used > dim:
        raise make_room_error(dim, used)
    return firsts, used


def _tabulate(rows: Sequence[Feature], columns: Sequence[Feature], firsts: dict[Pair, int]) -> Integers:
    table = [[firsts.get((one.name, other.name), ABSENT) for other in columns] for one in rows]
    return np.array(table, np.int64).reshape(len(rows), len(columns))


def _multiply(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one * other
