"""Rows from terms: a constant, the terms of both sides, and products; divided so that norms are at most 1.

Let c be the context's terms and a the action's. The row is a constant 1, c, a, and the products of the pairs of
features that interact: without products of both sides a context would change all scores alike, and no choice. A
feature weighs at most 1, whatever its value, and so does a pair; so the row's norm is at most the root of 1 + the
number of features and pairs, and it is divided by just that, or by its own norm where collisions of hashed terms made
that larger. No value decides how a row is divided, so that sizes are not forgotten.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from latecomer.core.state import Array
from latecomer.encoding.layout import make_layout
from latecomer.encoding.sides import ACTION, CONTEXT, DeclaredSide, OpenSide, read_each
from latecomer.encoding.spec import EncoderSpec, Scale
from latecomer.encoding.sums import Plan, make_open_plan, make_plans, sum_terms
from latecomer.encoding.table import Column
from latecomer.encoding.terms import Terms
from latecomer.encoding.values import FeatureRow, Plain, to_plain_features

_BLOCK = 1 << 15
"""Terms of a table that are summed at once, products included: what fits into a processor's cache."""


class PreparedActions(NamedTuple):
    """Actions as an encoder has read them: their terms, and how many features each has."""

    terms: Terms
    sizes: Array = np.empty(0)


class OpenRows:
    """Rows of any names: all terms are hashed, and a row's bound follows from the names that it has."""

    def __init__(self, dim: int, scales: Mapping[str, Scale]) -> None:
        self._dim = dim
        self._context, self._actions = OpenSide(CONTEXT, scales), OpenSide(ACTION, scales)

    def encode(self, context: FeatureRow, actions: Sequence[FeatureRow]) -> Array:
        """Return the row of each action; errors have the field `context` or `actions[i]`."""
        return self.encode_prepared(context, self.prepare(actions))

    def prepare(self, actions: Sequence[FeatureRow]) -> "PreparedActions":
        """Read actions once, for many contexts."""
        described = _read_features({}, actions)[1]
        sizes = np.array([len(row) for row in described], np.float64)
        return PreparedActions(self._actions.read_rows(described, "action"), sizes)

    def encode_prepared(self, context: FeatureRow, actions: "PreparedActions") -> Array:
        """Return the row of each action that `prepare` has read."""
        around = _read_features(context, ())[0]
        outer, inner = self._context.read_rows([around], "context"), actions.terms
        plan = make_open_plan(self._dim, outer.numbers.shape[1], inner.numbers.shape[1])
        return _divide(sum_terms(plan, outer, inner), (1.0 + len(around)) * (1.0 + actions.sizes))


class DeclaredRows:
    """Rows of declared features, in the columns of a layout."""

    def __init__(self, spec: EncoderSpec) -> None:
        self.layout = make_layout(spec)
        self._context = DeclaredSide(CONTEXT, spec.context or ())
        self._actions = DeclaredSide(ACTION, spec.actions or ())
        self._plans = make_plans(self.layout, *(np.arange(side.size) for side in (self._context, self._actions)))

    def encode(self, context: FeatureRow, actions: Sequence[FeatureRow]) -> Array:
        """Return the row of each action; errors have the field `context` or `actions[i]`."""
        return self.encode_prepared(context, self.prepare(actions))

    def prepare(self, actions: Sequence[FeatureRow]) -> "PreparedActions":
        """Read actions once, for many contexts."""
        return PreparedActions(self._actions.read_rows(_read_features({}, actions)[1], "action"))

    def encode_prepared(self, context: FeatureRow, actions: "PreparedActions") -> Array:
        """Return the row of each action that `prepare` has read."""
        outer = self._context.read_rows([_read_features(context, ())[0]], "context")
        return self._sum_rows(outer, actions.terms)

    def encode_table(self, columns: Mapping[str, Column], count: int, context: FeatureRow | None = None) -> Array:
        """Return a row for each of the `count` rows of a table, of one action each, in the same bits as `encode`.

        The context is in the table too, or it is given, and all rows share it.
        """
        rows, outer = np.empty((count, self.layout.dim)), None
        if context is not None:
            outer = self._context.read_rows([_read_features(context, ())[0]], "context")
        step = max(1, _BLOCK // (1 + self.layout.groups))
        for start in range(0, count, step):
            part = slice(start, min(start + step, count))
            around = self._context.read_columns(columns, part) if outer is None else outer
            rows[part] = self._sum_rows(around, self._actions.read_columns(columns, part))
        return rows

    def _sum_rows(self, outer: Terms, inner: Terms) -> Array:
        rows = np.zeros((len(inner.numbers), self.layout.dim))
        for plan in self._find_plans(outer, inner):
            rows += sum_terms(plan, outer, inner)
        return _divide(rows, np.array([1.0 + self.layout.groups]))

    def _find_plans(self, outer: Terms, inner: Terms) -> list[Plan]:
        """Return the plans for these slots; those of one slot for each feature are at hand."""
        if len(outer.features) == self._context.size and len(inner.features) == self._actions.size:
            return self._plans
        return make_plans(self.layout, outer.features, inner.features)


Rows = OpenRows | DeclaredRows


def make_rows(spec: EncoderSpec) -> Rows:
    """Return the rows of a specification."""
    return OpenRows(spec.dim, spec.scales) if spec.is_open else DeclaredRows(spec)


def _read_features(
    context: FeatureRow, actions: Sequence[FeatureRow]
) -> tuple[dict[str, Plain], list[dict[str, Plain]]]:
    """Return the features as JSON has them."""
    [around] = read_each(to_plain_features, [context], "context")
    return around, read_each(to_plain_features, actions, "action")


def _divide(rows: Array, squares: Array) -> Array:
    """Write the constant, and divide rows by the bounds of their norms."""
    rows[:, 0] = 1.0
    norms = np.sqrt(np.add.reduce(rows * rows, axis=1))
    rows /= np.maximum(np.sqrt(squares), norms)[:, None]
    return rows
