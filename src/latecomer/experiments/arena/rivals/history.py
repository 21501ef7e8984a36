"""The rounds of a run, for rivals that go through all of them again."""

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array

Delays = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NONE = -1
"""The delay of a round that has not converted."""


class History:
    """Chosen actions and the delays of their conversions; one that comes after the window is ignored."""

    def __init__(self, dim: int, window: int) -> None:
        self.window, self.rounds = window, 0
        self._actions, self._delays = np.empty((64, dim)), np.full(64, NONE, np.int64)

    def append(self, action: Array) -> None:
        """Record a decision."""
        if self.rounds == len(self._delays):
            self._actions = np.concatenate([self._actions, np.empty_like(self._actions)])
            self._delays = np.concatenate([self._delays, np.full(self.rounds, NONE, np.int64)])
        self._actions[self.rounds] = action
        self.rounds += 1

    def convert(self, round: int) -> bool:
        """Record a conversion; return whether it came within the window."""
        if self.rounds - round > self.window or self._delays[round - 1] != NONE:
            return False
        self._delays[round - 1] = self.rounds - round
        return True

    @property
    def actions(self) -> Array:
        """(rounds, d)."""
        return self._actions[: self.rounds]

    @property
    def delays(self) -> Delays:
        """(rounds,), `NONE` where a round has not converted."""
        return self._delays[: self.rounds]

    @property
    def converted(self) -> Flags:
        """(rounds,)."""
        return np.asarray(self.delays != NONE)

    @property
    def ages(self) -> Delays:
        """(rounds,): the longest delay that can have been seen, at most the window."""
        return np.minimum(self.window, self.rounds - 1 - np.arange(self.rounds))

    @property
    def closed(self) -> int:
        """The number of rounds, the first ones, whose window is over at the next decision."""
        return max(0, self.rounds - self.window)


def next_fit(rounds: int) -> int:
    """Return the number of rounds at which a model is fitted again: when there is a thirty-second more."""
    return rounds + 1 + rounds // 32
