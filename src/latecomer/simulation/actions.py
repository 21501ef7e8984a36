"""Action laws: what a world offers in each round.

A law has `sample(rng, rounds, theta)`, which returns a (rounds, K, d) array of actions of norm at most 1, d being the
length of θ. Any object with that method will do:

>>> import numpy as np, latecomer as lc
>>> class Axes:
...     def sample(self, rng, rounds, theta):
...         return np.broadcast_to(np.eye(len(theta)), (rounds, len(theta), len(theta)))
>>> world = lc.World(theta=[0.2, 0.4], actions=UnitVectors(), delays=lc.delays.Geometric(mean=10))
>>> lc.simulate(world, {"greedy": lc.Greedy(2, 30)}, horizon=100, runs=2, seed=0).final("greedy").shape
(2,)
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.simulation.logged_actions import FromLog, Rows
from latecomer.simulation.one_hot import OneHot
from latecomer.validation import check_integer

__all__ = [
    "ActionLaw",
    "Binary",
    "ChangingActions",
    "Fixed",
    "FromLog",
    "OneHot",
    "RandomFixed",
    "Rotating",
    "Sphere",
    "Uniform",
    "UnitVectors",
]

_LIST_LIMIT = 16
"""Up to this dimension, all of {0,1}^d is kept as a list."""


def __dir__() -> list[str]:
    return sorted(__all__)


class ActionLaw(Protocol):
    """The interface of a law of action sets."""

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:
        """A (rounds, K, d) array."""


class ChangingActions(Protocol):
    """A law that is not the same in every round."""

    def sample_from(self, rng: np.random.Generator, first: int, rounds: int, theta: Array) -> Array:
        """A (rounds, K, d) array for rounds first, first + 1, …, counted from 0."""


def is_changing(law: object) -> TypeGuard[ChangingActions]:
    """Tell whether a law has `sample_from`; `isinstance` with a protocol takes a third of the time of the draws."""
    return hasattr(law, "sample_from")


class ListedActions(Protocol):
    """A law that draws from a list of actions: rounds of it need not be copied out, or checked, one by one."""

    def list_actions(self, dim: int) -> Array | None:
        """Every action that the law can offer, a row each; None where there are too many."""

    def sample_rows(self, rng: np.random.Generator, first: int, rounds: int, dim: int) -> Rows:
        """A (rounds, K) array of rows of the list, for rounds first, first + 1, …: the actions that sampling gives."""


def is_listed(law: object) -> TypeGuard[ListedActions]:
    """Tell whether a law is a built-in one that draws from a list. One derived from it may sample otherwise."""
    return type(law) in (Binary, Fixed, UnitVectors, RandomFixed, Rotating, FromLog, OneHot)


def _repeat_all_rows(count: int, rounds: int) -> Rows:
    return np.tile(np.arange(count, dtype=np.int32), (rounds, 1))


def _normalise(actions: Array) -> Array:
    return np.asarray(actions / np.sqrt(np.einsum("rki,rki->rk", actions, actions))[:, :, None])


@dataclass(frozen=True)
class Binary:
    """K vectors of {0,1}^d without the zero vector, normalised: what the paper's text says."""

    count: int

    def __post_init__(self) -> None:
        check_integer("count", self.count, least=1)

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:
        """Uniform over the 2^d − 1 vectors that are not zero, which is what redrawing the zero vector gives."""
        dim = len(theta)
        listed = self.list_actions(dim)
        if listed is None:
            bits = rng.integers(0, 2, (rounds, self.count, dim)).astype(np.float64)
            while len(zero := np.argwhere(~bits.any(axis=2))):
                bits[zero[:, 0], zero[:, 1]] = rng.integers(0, 2, (len(zero), dim))
            return _normalise(bits)
        return np.asarray(listed.take(self.sample_rows(rng, 0, rounds, dim), axis=0))

    def list_actions(self, dim: int) -> Array | None:
        """The 2^d − 1 vectors, unless d is large."""
        return _list_binary_vectors(dim)[1:] if dim <= _LIST_LIMIT else None

    def sample_rows(self, rng: np.random.Generator, first: int, rounds: int, dim: int) -> Rows:  # noqa: ARG002
        """A (rounds, K) array."""
        return rng.integers(0, 2**dim - 1, (rounds, self.count), np.int32)


@cache
def _list_binary_vectors(dim: int) -> Array:
    """{0,1}^d in the order of its patterns, normalised but for the zero vector."""
    table = ((np.arange(2**dim)[:, None] >> np.arange(dim)) & 1).astype(np.float64)
    table[1:] /= np.linalg.norm(table[1:], axis=1, keepdims=True)
    return table


@dataclass(frozen=True)
class Uniform:
    """K vectors of [0,1]^d, normalised: what the paper's released code does."""

    count: int

    def __post_init__(self) -> None:
        check_integer("count", self.count, least=1)

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:
        """A (rounds, K, d) array."""
        return _normalise(rng.random((rounds, self.count, len(theta))))


@dataclass(frozen=True)
class Sphere:
    """K vectors from the half of the unit sphere that faces θ: the other half has no reward that is a probability."""

    count: int

    def __post_init__(self) -> None:
        check_integer("count", self.count, least=1)

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:
        """A (rounds, K, d) array."""
        actions = _normalise(rng.standard_normal((rounds, self.count, len(theta))))
        return np.asarray(np.where((actions @ theta)[:, :, None] < 0.0, -actions, actions))


@dataclass(frozen=True)
class Fixed:
    """Arms that are the same in every round."""

    arms: npt.ArrayLike = field(repr=False)

    def __post_init__(self) -> None:
        try:
            arms = np.array(self.arms, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"arms must be a (K, d) array of numbers, one row per arm; got {self.arms!r}", field="arms"
            ) from None
        if arms.ndim != 2 or not arms.size:
            raise InputError(f"arms must be a (K, d) array, one row per arm; got shape {arms.shape}", field="arms")
        object.__setattr__(self, "arms", arms)

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:  # noqa: ARG002 - a law's signature
        """The arms, without a copy for each round."""
        arms = np.asarray(self.arms, np.float64)
        return np.broadcast_to(arms, (rounds, *arms.shape))

    def list_actions(self, dim: int) -> Array:  # noqa: ARG002 - a law's signature
        """The arms."""
        return np.asarray(self.arms, np.float64)

    def sample_rows(self, rng: np.random.Generator, first: int, rounds: int, dim: int) -> Rows:  # noqa: ARG002
        """A (rounds, K) array."""
        return _repeat_all_rows(len(np.asarray(self.arms)), rounds)


@dataclass(frozen=True)
class UnitVectors:
    """The d unit vectors in every round: arms that tell nothing of each other."""

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:  # noqa: ARG002 - a law's signature
        """The arms, without a copy for each round."""
        return np.broadcast_to(np.eye(len(theta)), (rounds, len(theta), len(theta)))

    def list_actions(self, dim: int) -> Array:
        """The d unit vectors."""
        return np.eye(dim)

    def sample_rows(self, rng: np.random.Generator, first: int, rounds: int, dim: int) -> Rows:  # noqa: ARG002
        """A (rounds, K) array."""
        return _repeat_all_rows(dim, rounds)


@dataclass(frozen=True)
class RandomFixed:
    """K arms of [0,1]^d, normalised, the same in every round and run; another `seed` draws others."""

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("count", self.count, least=1)
        check_integer("seed", self.seed, least=0)

    def arms(self, dim: int) -> Array:
        """All of them, a (K, d) array."""
        return np.asarray(_normalise(np.random.default_rng(self.seed).random((1, self.count, dim)))[0])

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:  # noqa: ARG002 - a law's signature
        """The arms, without a copy for each round."""
        return np.broadcast_to(self.arms(len(theta)), (rounds, self.count, len(theta)))

    def list_actions(self, dim: int) -> Array:
        """The arms."""
        return self.arms(dim)

    def sample_rows(self, rng: np.random.Generator, first: int, rounds: int, dim: int) -> Rows:  # noqa: ARG002
        """A (rounds, K) array."""
        return _repeat_all_rows(self.count, rounds)


@dataclass(frozen=True)
class Rotating:
    """Arms that appear and vanish: of `count` random arms `visible` are on offer, one further every `period`."""

    count: int
    visible: int
    period: int
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("period", self.period, least=1)
        if check_integer("visible", self.visible, least=1) > check_integer("count", self.count, least=1):
            raise InputError(f"visible must be at most count, {self.count}; got {self.visible}", field="visible")
        check_integer("seed", self.seed, least=0)

    def sample(self, rng: np.random.Generator, rounds: int, theta: Array) -> Array:
        """The first rounds."""
        return self.sample_from(rng, 0, rounds, theta)

    def sample_from(self, rng: np.random.Generator, first: int, rounds: int, theta: Array) -> Array:
        """Rounds first, first + 1, …, counted from 0."""
        return np.asarray(self.list_actions(len(theta))[self.sample_rows(rng, first, rounds, len(theta))])

    def list_actions(self, dim: int) -> Array:
        """All arms, visible or not."""
        return RandomFixed(self.count, self.seed).arms(dim)

    def sample_rows(self, rng: np.random.Generator, first: int, rounds: int, dim: int) -> Rows:  # noqa: ARG002
        """A (rounds, visible) array."""
        gone = (first + np.arange(rounds)) // self.period
        return ((gone[:, None] + np.arange(self.visible)) % self.count).astype(np.int32)
