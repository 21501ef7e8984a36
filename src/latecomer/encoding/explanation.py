"""θ̂ by feature: the weight of every term that is known by name, and the terms that share columns."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np
import polars as pl

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


def explain(spec: EncoderSpec, policy: LinearModel, *, confidence: float) -> pl.DataFrame:
    """Return a row for every known term: feature, weight, low, high, step, shares; the largest weights first."""
    if policy.dim != spec.dim:
        raise InputError(
            f"policy must have the encoder's dim, {spec.dim}; got {policy.dim}: take the policy that it encodes for",
            field="policy",
        )
    quantile = NormalDist().inv_cdf(0.5 + check_probability("confidence", confidence) / 2.0)
    terms, layout = list_terms(spec), make_layout(spec)
    rows = np.zeros((len(terms), spec.dim))
    for row, term in zip(rows, terms, strict=True):
        row[list(term.columns)] = term.weights
    rows /= math.sqrt(1.0 + layout.groups)
    weights = rows @ policy.theta_hat
    spread = quantile * np.sqrt(np.maximum(np.einsum("ij,ij->i", rows @ policy.covariance, rows), 0.0))
    table = pl.DataFrame(
        {
            "feature": [term.name for term in terms],
            "weight": weights,
            "low": weights - spread,
            "high": weights + spread,
            "step": pl.Series([term.step for term in terms], dtype=pl.Float64),
            "shares": pl.Series([len(others) for others in _find_sharing(terms)], dtype=pl.Int64),
        }
    )
    return table.sort(pl.col("weight").abs(), descending=True, maintain_order=True)


def find_collisions(spec: EncoderSpec) -> pl.DataFrame:
    """Return the known terms that share a column: term, columns, shares, inseparable; most shares first."""
    terms = list_terms(spec)
    found = [(term, others) for term, others in zip(terms, _find_sharing(terms), strict=True) if others]
    table = pl.DataFrame(
        {
            "term": [term.name for term, _ in found],
            "columns": [sorted(term.columns) for term, _ in found],
            "shares": [len(others) for _, others in found],
            "inseparable": [
                [terms[other].name for other in sorted(others) if set(terms[other].columns) == set(term.columns)]
                for term, others in found
            ],
        },
        schema={
            "term": pl.String,
            "columns": pl.List(pl.Int64),
            "shares": pl.Int64,
            "inseparable": pl.List(pl.String),
        },
    )
    return table.sort("shares", descending=True, maintain_order=True)


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


def _find_sharing(terms: Sequence[KnownTerm]) -> list[set[int]]:
    """Return the other terms that each shares a column with."""
    holders: dict[int, set[int]] = defaultdict(set)
    for position, term in enumerate(terms):
        for column in term.columns:
            holders[column].add(position)
    return [set().union(*(holders[column] for column in term.columns)) - {i} for i, term in enumerate(terms)]
