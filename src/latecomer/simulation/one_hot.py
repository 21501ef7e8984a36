"""Action sets of categories: leads, visitors or items that a pair of labels describes."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.simulation.logged_actions import Rows
from latecomer.validation import check_integer


@dataclass(frozen=True)
class OneHot:
    """K pairs of categories, drawn anew in each round by the weights of a table: one-hot rows of norm 1.

    Parameters
    ----------
    count
        K.
    table
        A (rows, columns) array of weights, of any sum: how common each pair is. The dimension is rows + columns.

    Examples
    --------
    >>> import latecomer as lc
    >>> law = lc.actions.OneHot(3, table=[[5, 1], [2, 0]])  # the last pair never comes
    >>> law.list_actions(4).round(2)
    array([[0.71, 0.  , 0.71, 0.  ],
           [0.71, 0.  , 0.  , 0.71],
           [0.  , 0.71, 0.71, 0.  ]])
    """

    count: int
    table: npt.ArrayLike = field(repr=False)

    def __post_init__(self) -> None:
        check_integer("count", self.count, least=1)
        try:
            table = np.array(self.table, np.float64)
        except (TypeError, ValueError):
            table = np.empty(0)
        if table.ndim != 2 or not table.size or not ((table >= 0.0) & np.isfinite(table)).all() or not table.any():
            raise InputError(
                f"table must be a (rows, columns) array of weights, at least 0 and some above; got {self.table!r:.80}",
                field="table",
            )
        object.__setattr__(self, "table", table)

    @cached_property
    def _pairs(self) -> npt.NDArray[np.int64]:
        return np.argwhere(np.asarray(self.table) > 0.0)

    @cached_property
    def _bounds(self) -> Array:
        weights = np.asarray(self.table, np.float64)[tuple(self._pairs.T)]
        return np.asarray(np.cumsum(weights)[:-1] / weights.sum())

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:
        """A (rounds, K, d) array."""
        return np.asarray(self.list_actions(len(theta))[self.sample_rows(rng, 0, rounds, len(theta))])

    def list_actions(self, dim: int) -> Array:  # noqa: ARG002 - a law's signature
        """Every pair that can come."""
        rows, columns = np.asarray(self.table).shape
        listed = np.zeros((len(self._pairs), rows + columns))
        places = np.arange(len(listed))
        listed[places, self._pairs[:, 0]] = listed[places, rows + self._pairs[:, 1]] = np.sqrt(0.5)
        return listed

    def sample_rows(self, rng: np.random.Generator, first: int, rounds: int, dim: int) -> Rows:  # noqa: ARG002
        """A (rounds, K) array."""
        return np.searchsorted(self._bounds, rng.random((rounds, self.count)), side="right").astype(np.int32)
