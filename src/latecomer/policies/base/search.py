"""Searches for the actions of the largest ⟨a, θ̃⟩: among rows that were checked before, or by a caller's oracle."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from latecomer.core.action_summary import Shorts, summarise_sums
from latecomer.core.linalg.products import TIE
from latecomer.core.state import Array, Integers
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import check_actions, explain_inadmissible
from latecomer.policies.base.kernels import NORM_LIMIT
from latecomer.validation import short_repr

_SCORES_PER_PRODUCT = 1 << 23
"""Scores that are in memory at once: the more samples share a product, the less each takes."""

_ROWS_PER_BLOCK = 1024

Rows = npt.NDArray[np.floating[Any]]
"""In single or double precision."""
Oracle = Callable[[Array], npt.ArrayLike]
"""Returns the action of the largest ⟨a, θ̃⟩, a vector of norm at most 1, given θ̃."""


class Search(Protocol):
    """The actions that a decision chooses from, found by their scores."""

    summary: Shorts
    """The summary of all of them (`core.action_summary`)."""
    is_exact: bool
    """True where it finds the best, and can take a bonus into account."""

    @property
    def count(self) -> int | None:
        """K; None where it is not known."""

    def find_best(self, thetas: Array, k: int, bonus: Array | None = None) -> Integers:
        """Return the indices of the k largest ⟨a, θ̃⟩ for each row of `thetas`, the largest first: (n, k).

        With a bonus, a matrix M, they are those of the largest ⟨a, θ̃⟩ + ⟨a, Ma⟩.
        """

    def has(self, index: int) -> bool:
        """Tell whether the action can be chosen."""

    def take(self, index: int) -> Array:
        """Return an action."""

    def draw(self, rng: np.random.Generator, k: int, first: Sequence[int] = ()) -> list[int]:
        """Draw k different actions, all orders being equally likely, after those that stand `first`."""


class ExactSearch:
    """All of some rows, but for those that are excluded; ties go to the first.

    Rows of single precision are scored so, and those that rounding cannot tell from the best once more in double.
    """

    is_exact = True

    def __init__(self, rows: Rows, summary: Shorts, excluded: Integers | None = None) -> None:
        self.rows, self.summary = rows, summary
        self._excluded = np.empty(0, np.int64) if excluded is None else excluded

    @property
    def count(self) -> int:
        """K, without those that are excluded."""
        return len(self.rows) - len(self._excluded)

    def find_best(self, thetas: Array, k: int, bonus: Array | None = None) -> Integers:
        """Return the indices of the k largest ⟨a, θ̃⟩, and of their bonus, for each row of `thetas`."""
        found = np.empty((len(thetas), k), np.int64)
        added = None if bonus is None else _square(self.rows, bonus.astype(self.rows.dtype))
        step = max(1, _SCORES_PER_PRODUCT // len(self.rows))
        for low in range(0, len(thetas), step):
            part = thetas[low : low + step]
            scores: Rows = part.astype(self.rows.dtype) @ self.rows.T
            if added is not None:
                scores += added
            scores[:, self._excluded] = -np.inf
            for place, theta in enumerate(part):
                found[low + place] = self._take_best(scores[place], theta, k, bonus)
        return found

    def _take_best(self, scores: Rows, theta: Array, k: int, bonus: Array | None) -> list[int]:
        least = float(scores.max() if k == 1 else np.partition(scores, -k)[-k])
        size = float(np.linalg.norm(theta)) + (0.0 if bonus is None else float(np.linalg.norm(bonus)))
        rounding = 2.0 * (len(theta) + 8) * float(np.finfo(scores.dtype).eps) * size
        near = np.flatnonzero(scores >= least - 2.0 * rounding - 2.0 * TIE * (1.0 + abs(least)))
        rows = self.rows[near].astype(np.float64)
        exact = rows @ theta if bonus is None else rows @ theta + _square(rows, bonus)
        return rank_by_score(near, exact, k)

    def has(self, index: int) -> bool:
        """Tell whether the action can be chosen."""
        return 0 <= index < len(self.rows) and index not in self._excluded

    def take(self, index: int) -> Array:
        """Return an action."""
        found: Array = self.rows[index].astype(np.float64)
        return found

    def draw(self, rng: np.random.Generator, k: int, first: Sequence[int] = ()) -> list[int]:
        """Draw k different actions, all orders being equally likely, after those that stand `first`."""
        found, taken = list(first), {*first, *self._excluded.tolist()}
        while len(found) < k:
            index = int(rng.integers(len(self.rows)))
            if index not in taken:
                found.append(index)
                taken.add(index)
        return found


def _square(rows: Rows, matrix: Rows) -> Rows:
    """Return ⟨a, Ma⟩ for each row a, in blocks that fit a processor's cache."""
    found = np.empty(len(rows), rows.dtype)
    for low in range(0, len(rows), _ROWS_PER_BLOCK):
        part = rows[low : low + _ROWS_PER_BLOCK]
        np.einsum("ij,ij->i", part @ matrix, part, out=found[low : low + _ROWS_PER_BLOCK])
    return found


def rank_by_score(indices: Integers, scores: Array, k: int) -> list[int]:
    """Return the k indices of the largest scores; a later one must beat an earlier one by more than rounding."""
    found: list[int] = []
    scores = scores.copy()
    for _ in range(k):
        best = float(scores.max())
        place = int(np.argmax(scores >= best - TIE * (1.0 + abs(best))))
        found.append(int(indices[place]))
        scores[place] = -np.inf
    return found


class OracleSearch:
    """The answers of a caller's oracle; actions that are equal are one."""

    count, is_exact = None, False

    def __init__(self, oracle: Oracle, dim: int) -> None:
        if not callable(oracle):
            raise InputError(f"oracle must be a function of θ̃; got {short_repr(oracle)}", field="oracle")
        self._oracle, self._dim = oracle, dim
        self._places: dict[bytes, int] = {}
        self._actions: list[Array] = []
        self.summary = summarise(np.zeros((1, dim)))

    def find_best(self, thetas: Array, k: int, bonus: Array | None = None) -> Integers:  # noqa: ARG002
        """Ask the oracle once for each row of `thetas`."""
        return np.array([[self._ask(theta)] for theta in thetas])

    def _ask(self, theta: Array) -> int:
        answer = self._oracle(theta.copy())
        try:
            actions = check_actions(np.asarray([answer]), self._dim)
            if not np.linalg.norm(actions) <= NORM_LIMIT:
                raise explain_inadmissible(actions)
        except InputError as error:
            raise InputError(f"the oracle's answer: {error}", field="oracle") from None
        key = (actions[0] + 0.0).tobytes()
        if key not in self._places:
            self._places[key] = len(self._actions)
            self._actions.append(actions[0].copy())
        return self._places[key]

    def has(self, index: int) -> bool:
        """Tell whether the oracle has given the action."""
        return 0 <= index < len(self._actions)

    def take(self, index: int) -> Array:
        """Return an action."""
        return self._actions[index]

    def draw(self, rng: np.random.Generator, k: int, first: Sequence[int] = ()) -> list[int]:  # noqa: ARG002
        """Refuse: there is no list to draw from."""
        raise AssertionError("a floor or a control was not refused before an oracle was asked")


def summarise(rows: Rows) -> Shorts:
    """Summarise rows as `core.action_summary` does, by NumPy's sums."""
    return summarise_sums(rows.sum(axis=0, dtype=np.float64), float(np.square(rows, dtype=np.float64).sum()), len(rows))
