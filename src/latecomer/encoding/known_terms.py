"""The terms of an encoder that are known by name, where they stand in a row, and what a policy makes of them."""

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np

from latecomer.core.state import Array
from latecomer.encoding.hashing import HALF, hash_term, join_numbers, place_terms, sign_terms
from latecomer.encoding.layout import ABSENT, HASHED, Layout, make_layout
from latecomer.encoding.sides import ACTION, CONTEXT
from latecomer.encoding.spec import EncoderSpec, Feature, NumberFeature, OneHotFeature
from latecomer.errors import InputError
from latecomer.validation import check_probability

MOST_PRODUCTS = 20_000
"""Products of one pair of features that are named; a pair with more of them is left out."""


class LinearModel(Protocol):
    """A policy as an explanation reads it."""

    @property
    def dim(self) -> int:
        """The number of columns."""

    @property
    def theta_hat(self) -> Array:
        """The estimate of the weights."""

    @property
    def covariance(self) -> Array:
        """The covariance of the estimate."""


class KnownTerm(NamedTuple):
    """A term by name: its number, its columns with its weight in each, and a number's step."""

    name: str
    number: int
    level: int
    columns: tuple[int, ...]
    weights: tuple[float, ...]
    step: float | None


def weigh_terms(
    spec: EncoderSpec, terms: Sequence[KnownTerm], policy: LinearModel, *, confidence: float
) -> tuple[Array, Array]:
    """Return the weight of each term by θ̂, and the half-width of its interval."""
    if policy.dim != spec.dim:
        raise InputError(
            f"policy must have the encoder's dim, {spec.dim}; got {policy.dim}: take the policy that it encodes for",
            field="policy",
        )
    quantile = NormalDist().inv_cdf(0.5 + check_probability("confidence", confidence, usual=0.9) / 2.0)
    rows = np.zeros((len(terms), spec.dim))
    for row, term in zip(rows, terms, strict=True):
        row[list(term.columns)] = term.weights
    rows /= math.sqrt(1.0 + make_layout(spec).groups)
    weights: Array = rows @ policy.theta_hat
    spread: Array = quantile * np.sqrt(np.maximum(np.einsum("ij,ij->i", rows @ policy.covariance, rows), 0.0))
    return weights, spread


def list_terms(spec: EncoderSpec) -> list[KnownTerm]:
    """Return the constant, the terms of all features, and their products."""
    if spec.is_open:
        raise InputError(
            "an explanation needs an encoder with declared features: give context and actions their names, and fit it"
        )
    layout = make_layout(spec)
    context, actions = spec.context or [], spec.actions or []
    outer = [_list_levels(CONTEXT, f, layout, int(layout.context[i])) for i, f in enumerate(context)]
    inner = [_list_levels(ACTION, f, layout, int(layout.actions[i])) for i, f in enumerate(actions)]
    terms = [KnownTerm("intercept", 0, 0, (0,), (1.0,), None), *_chain(outer), *_chain(inner)]
    for table, sides in ((layout.crossed, outer), (layout.within, inner)):
        for i, j in zip(*np.nonzero(table != ABSENT), strict=True):
            terms += _multiply(sides[i], inner[j], layout, first=int(table[i, j]), size=int(layout.action_sizes[j]))
    return terms


def _chain(groups: Iterable[Sequence[KnownTerm]]) -> list[KnownTerm]:
    return [term for group in groups for term in group]


def _list_levels(side: bytes, feature: Feature, layout: Layout, first: int) -> list[KnownTerm]:
    if isinstance(feature, NumberFeature):
        return [_place(feature.name, hash_term(side, feature.name), 0, layout, first=first, step=feature.scale)]
    levels = feature.levels if isinstance(feature, OneHotFeature) else feature.known
    return [
        _place(f"{feature.name}={text}", hash_term(side, feature.name, text), level, layout, first=first)
        for level, text in enumerate(levels)
    ]


def _multiply(
    left: Sequence[KnownTerm], right: Sequence[KnownTerm], layout: Layout, *, first: int, size: int
) -> list[KnownTerm]:
    if len(left) * len(right) > MOST_PRODUCTS:
        return []
    return [
        _place(
            f"{one.name} × {other.name}",
            int(join_numbers(np.array([one.number], np.uint64), np.array([other.number], np.uint64))[0]),
            one.level * size + other.level,
            layout,
            first=first,
            step=None if one.step is None and other.step is None else (one.step or 1.0) * (other.step or 1.0),
        )
        for one in left
        for other in right
    ]


def _place(name: str, number: int, level: int, layout: Layout, *, first: int, step: float | None = None) -> KnownTerm:
    if first != HASHED:
        return KnownTerm(name, number, level, (first + level,), (1.0,), step)
    numbers = np.array([number], np.uint64)
    columns = tuple(layout.hash_start + int(column[0]) for column in place_terms(numbers, layout.hash_count))
    return KnownTerm(name, number, level, columns, tuple(HALF * float(sign[0]) for sign in sign_terms(numbers)), step)
