"""Action sets as a log has them: real contexts in a simulated world."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array, Integers
from latecomer.errors import InputError
from latecomer.validation import check_choice, short_repr

Rows = npt.NDArray[np.int32]
"""Rows of a list of actions."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FromLog:
    """The action sets of a log, of any size each.

    Parameters
    ----------
    sets
        A (rounds, K, d) array; or (K_i, d) arrays, one for each round of the log; or what has them as `action_sets`.
    order
        "log": as they came, from the first on in every run, and over again after the last. "random": any of them,
        drawn anew in each round; with few logged sets, a run then does not follow their order.

    Examples
    --------
    >>> import latecomer as lc
    >>> morning, evening = [[1.0, 0.0], [0.0, 1.0]], [[0.6, 0.0], [0.0, 0.6], [0.5, 0.5]]
    >>> law = lc.actions.FromLog([morning, evening])
    >>> law
    FromLog(2 sets of 2 to 3 actions, order='log')
    >>> world = lc.World(theta=[0.2, 0.4], actions=law, delays=lc.delays.Geometric(mean=10))
    >>> lc.simulate(world, {"ours": lc.recommended(2, 30)}, horizon=100, runs=2, seed=0).final("ours").shape
    (2,)
    """

    actions: Array
    """(N, d): the actions of all sets, one after the other"""
    starts: Integers
    """The first row of each set of actions, and the end of the last: set i ends where set i + 1 begins."""
    order: Literal["log", "random"]

    def __init__(self, sets: Any, *, order: Literal["log", "random"] = "log") -> None:
        found = getattr(sets, "action_sets", sets)
        if not isinstance(found, Iterable) or isinstance(found, str | bytes | dict):
            raise InputError(
                "sets must be a (rounds, K, d) array, a list of (K, d) arrays, or have them as action_sets; "
                f"got {short_repr(sets)}",
                field="sets",
            )
        arrays: list[Array] = []
        for each in found:
            arrays.append(_check_set(each, len(arrays), arrays[0].shape[1] if arrays else None))
        if not arrays:
            raise InputError("sets must hold at least one set; got none", field="sets")
        actions = np.concatenate(arrays)
        if len(actions) >= 2**31:
            raise InputError(f"sets must hold fewer than 2^31 actions in all; got {len(actions):,}", field="sets")
        starts = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        object.__setattr__(self, "actions", actions)
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "order", check_choice("order", order, ("log", "random")))

    def __repr__(self) -> str:
        least, most = self._sizes.min(), self._sizes.max()
        size = f"{least} to {most}" if least < most else f"{most}"
        return f"FromLog({len(self._sizes):,} sets of {size} actions, order={self.order!r})"

    @cached_property
    def _sizes(self) -> Integers:
        return np.diff(self.starts)

    @cached_property
    def is_ragged(self) -> bool:
        """True where sets are of different sizes."""
        return bool(self._sizes.min() < self._sizes.max())

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:
        """A (rounds, K, d) array of the first rounds, where all sets are of one size."""
        if self.is_ragged:
            raise InputError("sets must be of one size for sample; sample_rows has sets of any size", field="sets")
        return np.asarray(self.actions[self.sample_rows(rng, 0, rounds, len(theta))])

    def list_actions(self, dim: int) -> Array:  # noqa: ARG002 - a law's signature
        """The actions of all sets."""
        return self.actions

    def sample_rows(self, rng: np.random.Generator, first: int, rounds: int, dim: int) -> Rows:  # noqa: ARG002
        """A (rounds, K) array with K the size of the largest set; a smaller one ends with −1."""
        count, places = len(self._sizes), np.arange(self._sizes.max())
        in_log = self.order == "log"
        chosen = (first + np.arange(rounds)) % count if in_log else rng.integers(0, count, rounds, np.int32)
        rows = self.starts[chosen][:, None] + places
        return np.where(places < self._sizes[chosen][:, None], rows, -1).astype(np.int32)


def _check_set(each: Any, place: int, dim: int | None) -> Array:
    try:
        actions = np.array(each, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"sets[{place}] must be a (K, d) array of numbers; got {short_repr(each)}") from None
    if actions.ndim != 2 or not actions.size or (dim is not None and actions.shape[1] != dim):
        rule = "a (K, d) array" if dim is None else f"a (K, {dim}) array, as the first is"
        raise InputError(f"sets[{place}] must be {rule}; got shape {actions.shape}", field="sets")
    return actions
