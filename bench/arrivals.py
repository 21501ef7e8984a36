"""A world drawn beforehand: the same action sets, purchases and delays for every side, and the loop that plays them."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

Round: TypeAlias = tuple[Array, list[bool], list[int], list[int]]
"""The action set; for each action whether it would convert in time; the inbox it would arrive in; today's inbox."""


def binary_sets(rng: np.random.Generator, count: int, *, actions: int = 10, dim: int = 5) -> Array:
    """Normalised vectors of {0, 1}^d, the zero vector drawn again."""
    rows = rng.integers(0, 2, (count * actions, dim)).astype(float)
    while (empty := ~rows.any(axis=1)).any():
        rows[empty] = rng.integers(0, 2, (int(empty.sum()), dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.reshape(count, actions, dim)


def dense_sets(rng: np.random.Generator, count: int, *, actions: int, dim: int) -> Array:
    """Directions without a zero in them."""
    sets = rng.standard_normal((count, actions, dim))
    sets /= np.linalg.norm(sets, axis=2, keepdims=True)
    return sets


class World:
    """θ = (1, …, 1)/√d, Bernoulli conversions, geometric delays of mean 100, accepted within the window."""

    def __init__(self, rounds: int, *, window: int = 100, actions: int = 10, dim: int = 5, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.sets = binary_sets(rng, rounds, actions=actions, dim=dim)
        chances = self.sets @ (np.ones(dim) / np.sqrt(dim))
        self.delays = rng.geometric(0.01, rounds)
        would = rng.random((rounds, 1)) < chances
        self.would = would & (self.delays <= window)[:, None]
        self.longest = window

    def script(self) -> list[Round]:
        """One side's copy: the inboxes fill as it plays."""
        inboxes: list[list[int]] = [[] for _ in range(len(self.sets) + self.longest + 1)]
        return [
            (actions, would, inboxes[t + min(delay, self.longest)], inboxes[t])
            for t, (actions, would, delay) in enumerate(
                zip(self.sets, self.would.tolist(), self.delays.tolist(), strict=True)
            )
        ]


def play(policy: Any, rounds: Iterable[Round]) -> None:
    """The loop that is timed; its own cost, a tenth of a microsecond a round, is in every side's time."""
    decide: Callable[[Array], Any] = policy.decide
    convert: Callable[[int], Any] = policy.convert
    for actions, would, later, inbox in rounds:
        decision = decide(actions)
        if would[decision.index]:
            later.append(decision.round)
        for round in inbox:
            convert(round)
