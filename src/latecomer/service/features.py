"""Signed hashing of features, names with values, into R^d; the same features give the same row for ever.

An action's row has a constant, its own terms, the context's terms, and the products of each action term with each
context term: without the products a context would change all scores alike, and no choice. A text `red` under `colour`
is the term `colour=red`; so is each text of a list, all of them together with the weight of one; a truth value is the
text `true` or `false`. A number is the term of its name, its weight (x - center) / scale, at least -1 and at most 1.
The scale is declared with the bandit, and without a declaration it is taken as it is in [-1, 1] and refused beyond.
null, NaN, NaT and NA are missing: a name without a term. docs/features.md argues for each of these.

A term's number h is BLAKE2b of its bytes (8 bytes, little-endian): `c` (context) or `a` (action), the name in UTF-8,
and for a text a NUL and the text. A product's number is what SplitMix64's finaliser makes of h_c + 0x9E3779B97F4A7C15 *
h_a modulo 2^64. Column 0 holds the constant, 1. A term stands in two of the m = d - 1 others, 1 + i and 1 + j, with its
weight over sqrt(2) in each: i = (h >> 2) mod 2^31 mod m and j = (i + 1 + (h >> 33) mod (m - 1)) mod m; it is negative
in the first where h is odd, in the second where h >> 1 is. The row is divided by sqrt((1 + n_c) * (1 + n_a)), n the
number of names of either side, or by its own norm where collisions made that larger: no value decides how it is
divided, so that sizes are not forgotten.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array, Integers
from latecomer.errors import InputError
from latecomer.service.bandit_spec import Scale
from latecomer.service.feature_values import FeatureRow, Plain, to_plain_features
from latecomer.service.scales import MIN_DIM
from latecomer.validation import short_repr

Numbers = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hash_features(
    context: FeatureRow, actions: Sequence[FeatureRow], dim: int, *, scales: Mapping[str, Scale] | None = None
) -> Array:
    """Return a row of norm at most 1 for each action.

    Parameters
    ----------
    context
        Features of the decision, shared by all actions.
    actions
        Features of each action: dicts, or rows of a DataFrame; NumPy scalars are accepted.
    dim
        The bandit's d, at least 3.
    scales
        The bandit's scales: the size of a number that counts as 1.

    Examples
    --------
    >>> hash_features({"hour": "noon"}, [{"colour": "red"}, {"colour": "blue", "price": 0.5}], dim=4).shape
    (2, 4)
    """
    if dim < MIN_DIM:
        raise InputError(
            f"actions with features need a bandit of at least {MIN_DIM} dimensions; this one has {dim}",
            field="actions",
        )
    context_terms, action_terms = _Terms(b"c", scales or {}), _Terms(b"a", scales or {})
    position = -1
    try:
        context_terms.add(context, "context")
        for position, features in enumerate(actions):
            action_terms.add(features, f"action {position}")
    except InputError as error:
        error.field = "context" if position < 0 else f"actions[{position}]"
        raise
    outer, inner = context_terms.to_arrays(), action_terms.to_arrays()
    joined = _mix(outer.numbers[:, None] + _GOLDEN * inner.numbers)
    rows = _sum_terms(outer.numbers, outer.weights, outer.rows, (1, dim)) + _sum_terms(
        np.concatenate([inner.numbers, joined.ravel()]),
        np.concatenate([inner.weights, np.outer(outer.weights, inner.weights).ravel()]),
        np.tile(inner.rows, 1 + len(joined)),
        (len(actions), dim),
    )
    rows[:, 0] = 1.0
    limits = np.sqrt((1.0 + outer.names) * (1.0 + inner.names))
    divided: Array = rows / np.maximum(limits, np.linalg.norm(rows, axis=1))[:, None]
    return divided


class _Arrays(NamedTuple):
    numbers: Numbers
    weights: Array
    rows: Integers
    names: Array


class _Terms:
    """The terms of a context, or of actions: each has a number, a weight, and the row that it belongs to."""

    def __init__(self, side: bytes, scales: Mapping[str, Scale]) -> None:
        self._side, self._scales = side, scales
        self._numbers: list[int] = []
        self._weights: list[float] = []
        self._rows: list[int] = []
        self._names: list[int] = []

    def add(self, row: FeatureRow, where: str) -> None:
        """Add the terms of the next row."""
        features = to_plain_features(row, where)
        for name in sorted(features):  # sums of doubles depend on their order
            value, stem = features[name], self._side + name.encode()
            if isinstance(value, float):
                self._numbers.append(_hash_term(stem))
                self._weights.append(_scale_number(name, value, where, self._scales.get(name)))
            elif value is not None:
                if name in self._scales:
                    raise InputError(
                        f"{where}: {short_repr(name)} must be a number, as declared; got {short_repr(value)}"
                    )
                texts = _list_texts(value)
                self._numbers += [_hash_term(stem + b"\x00" + text.encode()) for text in texts]
                self._weights += [len(texts) ** -0.5 for _ in texts]
        self._rows += [len(self._names)] * (len(self._numbers) - len(self._rows))
        self._names.append(len(features))

    def to_arrays(self) -> _Arrays:
        """Return the terms as arrays, and the number of names of every row."""
        return _Arrays(
            np.array(self._numbers, np.uint64),
            np.array(self._weights),
            np.array(self._rows, np.int64),
            np.array(self._names, np.float64),
        )


def _sum_terms(numbers: Numbers, weights: Array, rows: Integers, shape: tuple[int, int]) -> Array:
    """Return rows with each term added to its two columns; column 0 stays 0."""
    (count, dim), others = shape, np.uint64(shape[1] - 1)
    first = (numbers >> np.uint64(2)) % np.uint64(1 << 31) % others
    second = (first + np.uint64(1) + (numbers >> np.uint64(33)) % (others - np.uint64(1))) % others
    signs = [1.0 - 2.0 * (numbers >> np.uint64(bit) & np.uint64(1)) for bit in (0, 1)]
    places = np.concatenate([rows * dim + 1 + column.astype(np.int64) for column in (first, second)])
    sums = np.bincount(places, np.concatenate([sign * weights for sign in signs]), minlength=count * dim)
    placed: Array = sums.astype(np.float64).reshape(shape) * math.sqrt(0.5)
    return placed


def _mix(numbers: Numbers) -> Numbers:
    """Apply the finaliser of SplitMix64."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    mixed: Numbers = numbers ^ (numbers >> np.uint64(31))
    return mixed


def _hash_term(term: bytes) -> int:
    return int.from_bytes(blake2b(term, digest_size=8).digest(), "little")


def _list_texts(value: bool | str | list[str]) -> Sequence[str]:
    if isinstance(value, bool):
        return ("true" if value else "false",)
    return (value,) if isinstance(value, str) else sorted(set(value))


def _scale_number(name: str, value: float, where: str, scale: Scale | None) -> float:
    """Return the number in its scale, clipped to [-1, 1]."""
    if scale is not None:
        return min(1.0, max(-1.0, (value - scale.center) / scale.scale))
    if abs(value) <= 1.0:
        return value
    raise InputError(
        f"{where}: {short_repr(name)} must have a declared scale, or be in [-1, 1]; got {value:g}: create the bandit "
        f'with features {{{short_repr(name)}: {{"scale": the size that it seldom exceeds}}}}, or send a label as a text'
    )


def digest_features(context: Mapping[str, Plain], actions: Sequence[tuple[str, Mapping[str, Plain]]]) -> bytes:
    """Return bytes that identify a request's features; two requests with the same rows may still differ in them."""
    return blake2b(msgspec.json.encode((context, actions), order="deterministic"), digest_size=16).digest()
