"""Sums of terms in columns: the slots of both sides, their products, and where each of them goes.

A slot is the place of a term in the arrays of a side. A declared feature has one slot, or as many as its longest list
of texts; every row has the same slots.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.encoding.hashing import HALF, join_numbers, place_terms, sign_terms
from latecomer.encoding.layout import ABSENT, HASHED, Layout
from latecomer.encoding.terms import Terms


class Slots(NamedTuple):
    """Slots of one side that are summed, and the first columns of their features."""

    chosen: Integers
    firsts: Integers


class Products(NamedTuple):
    """Pairs of slots that are multiplied, the first columns of their groups, and the levels of the features right."""

    left: Integers
    right: Integers
    firsts: Integers
    sizes: Integers


class Plan(NamedTuple):
    """Slots and products that have columns of their own; or, with a `start`, that are hashed into those from it on."""

    dim: int
    start: int | None
    outer: Slots
    inner: Slots
    crossed: Products
    within: Products


def make_plans(layout: Layout, outer: Integers, inner: Integers) -> list[Plan]:
    """Return the plans of terms in their own columns and of hashed ones; `outer` and `inner`: features of slots."""
    sizes = layout.action_sizes[inner]
    plans = []
    for start in (None, layout.hash_start):
        plan = Plan(
            layout.dim,
            start,
            _choose_slots(layout.context[outer], start),
            _choose_slots(layout.actions[inner], start),
            _choose_products(layout.crossed[np.ix_(outer, inner)], sizes, start),
            _choose_products(layout.within[np.ix_(inner, inner)], sizes, start),
        )
        if any(len(group[0]) for group in plan[2:]):
            plans.append(plan)
    return plans


@lru_cache(256)
def make_open_plan(dim: int, outer: int, inner: int) -> Plan:
    """Return the plan in which every slot, and every product of both sides, is hashed."""
    every = np.zeros((outer, inner), np.int64) + HASHED
    return Plan(
        dim,
        1,
        _choose_slots(every[:, :1].ravel() if inner else np.full(outer, HASHED), 1),
        _choose_slots(np.full(inner, HASHED), 1),
        _choose_products(every, np.ones(inner, np.int64), 1),
        _choose_products(np.zeros((inner, inner), np.int64), np.ones(inner, np.int64), 1),
    )


def _choose_slots(firsts: Integers, start: int | None) -> Slots:
    chosen = np.flatnonzero(firsts > ABSENT if start is None else firsts == HASHED)
    return Slots(chosen, firsts[chosen])


def _choose_products(firsts: Integers, sizes: Integers, start: int | None) -> Products:
    left, right = np.nonzero(firsts > ABSENT if start is None else firsts == HASHED)
    return Products(left, right, firsts[left, right], sizes[right])


def sum_terms(plan: Plan, outer: Terms, inner: Terms) -> Array:
    """Return rows with the plan's terms in their columns. There is one row of `outer`, or one for each of `inner`."""
    rows, contexts = len(inner.numbers), len(outer.numbers)
    weights = _collect(plan, outer.weights, inner.weights, np.multiply)
    starts = _find_starts(plan.dim, rows, contexts, len(plan.outer.chosen), len(weights))
    if plan.start is None:
        places = starts + _find_columns(plan, outer, inner)
    else:
        numbers = _collect(plan, outer.numbers, inner.numbers, join_numbers)
        first, second = place_terms(numbers, plan.dim - plan.start)
        starts = starts + plan.start
        places = np.concatenate([starts + first, starts + second])
        weights = np.concatenate([sign * weights for sign in sign_terms(numbers)])
    counted: Any = np.bincount(places, weights, minlength=(rows + contexts) * plan.dim)  # of no terms, integers
    sums: Array = counted.astype(np.float64, copy=False).reshape(rows + contexts, plan.dim)
    if plan.start is not None:
        sums *= HALF
    placed: Array = sums[:rows] + sums[rows:]
    return placed


def _collect(plan: Plan, outer: Any, inner: Any, multiply: Any) -> Any:
    """Return the values of actions, row by row, their products with contexts included; then those of contexts."""
    parts = [inner[:, plan.inner.chosen], multiply(outer[:, plan.crossed.left], inner[:, plan.crossed.right])]
    if len(plan.within.left):
        parts.append(multiply(inner[:, plan.within.left], inner[:, plan.within.right]))
    return np.concatenate([np.concatenate(parts, axis=1).ravel(), outer[:, plan.outer.chosen].ravel()])


def _find_columns(plan: Plan, outer: Terms, inner: Terms) -> Integers:
    """Return the column of each term: its group's first, and as many further as its level, in `_collect`'s order."""
    crossed, within = plan.crossed, plan.within
    parts = [
        plan.inner.firsts + inner.levels[:, plan.inner.chosen],
        crossed.firsts + outer.levels[:, crossed.left] * crossed.sizes + inner.levels[:, crossed.right],
    ]
    if len(within.left):
        parts.append(within.firsts + inner.levels[:, within.left] * within.sizes + inner.levels[:, within.right])
    contexts = plan.outer.firsts + outer.levels[:, plan.outer.chosen]
    columns: Integers = np.concatenate([np.concatenate(parts, axis=1).ravel(), contexts.ravel()])
    return columns


@lru_cache(64)
def _find_starts(dim: int, rows: int, contexts: int, outer: int, total: int) -> Integers:
    """Return where the row of each term begins, in `_collect`'s order."""
    inner = (total - contexts * outer) // rows if rows else 0
    lengths = np.repeat([inner, outer], [rows, contexts])
    return np.repeat(np.arange(rows + contexts) * dim, lengths)
