"""θ̂ by feature: the weight of every term that is known by name, and the terms that share columns."""

from collections import defaultdict
from collections.abc import Sequence

import polars as pl

from latecomer.encoding.known_terms import KnownTerm, LinearModel, list_terms, weigh_terms
from latecomer.encoding.spec import EncoderSpec

__all__ = ["LinearModel", "explain", "find_collisions"]


def explain(spec: EncoderSpec, policy: LinearModel, *, confidence: float) -> pl.DataFrame:
    """Return a row for every known term: feature, weight, low, high, step, shares; the largest weights first."""
    terms = list_terms(spec)
    weights, spread = weigh_terms(spec, terms, policy, confidence=confidence)
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


def _find_sharing(terms: Sequence[KnownTerm]) -> list[set[int]]:
    """Return the other terms that each shares a column with."""
    holders: dict[int, set[int]] = defaultdict(set)
    for position, term in enumerate(terms):
        for column in term.columns:
            holders[column].add(position)
    return [set().union(*(holders[column] for column in term.columns)) - {i} for i, term in enumerate(terms)]
