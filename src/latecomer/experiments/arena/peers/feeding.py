"""Two ways to feed delayed conversions to a library that knows of no delay.

*Waiting*: a round is learnt from when its window has closed, as 1 or 0. *At once*: a round is learnt from as 0 when it
is played, and again as 1 if it converts within the window; these libraries cannot take the 0 back.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from latecomer.core.state import Array


class Learner(Protocol):
    """A library's model: it chooses, and learns from a reward for what it chose."""

    def choose(self, actions: Array) -> tuple[int, Any]:
        """Return the index of an action, and what `learn` needs of the choice."""

    def learn(self, choice: Any, reward: float) -> None:
        """Learn from one reward, 0 or 1."""


@dataclass(frozen=True)
class Fed:
    """A template of a fed library, as `simulate` takes it."""

    make: Callable[[int], Learner]
    """make(seed)"""
    window: int
    feeding: Literal["waiting", "at once"]
    name: str

    def fresh(self, seed: int) -> "WaitingRule | AtOnceRule":
        """Make a rule for one run."""
        learner = self.make(seed)
        return WaitingRule(learner, self.window) if self.feeding == "waiting" else AtOnceRule(learner, self.window)

    def __repr__(self) -> str:
        return f"<{self.name}, {self.feeding}, window={self.window}>"


class WaitingRule:
    """Learn from a round when its window has closed."""

    def __init__(self, learner: Learner, window: int) -> None:
        self._learner, self._window, self._round = learner, window, 0
        self._open: deque[tuple[int, Any]] = deque()
        self._converted: set[int] = set()

    def decide(self, actions: Array) -> int:
        """Learn from the rounds that have closed, and choose."""
        self._round += 1
        while self._open and self._round - self._open[0][0] > self._window:
            round, choice = self._open.popleft()
            self._learner.learn(choice, float(round in self._converted))
            self._converted.discard(round)
        index, choice = self._learner.choose(actions)
        self._open.append((self._round, choice))
        return index

    def convert(self, round: int) -> None:
        """Remember a conversion within the window."""
        if self._round - round <= self._window:
            self._converted.add(round)


class AtOnceRule:
    """Learn 0 at once, and 1 on arrival."""

    def __init__(self, learner: Learner, window: int) -> None:
        self._learner, self._window = learner, window
        self._choices: list[Any] = []

    def decide(self, actions: Array) -> int:
        """Choose, and learn a 0."""
        index, choice = self._learner.choose(actions)
        self._choices.append(choice)
        self._learner.learn(choice, 0.0)
        return index

    def convert(self, round: int) -> None:
        """Learn a 1, within the window."""
        if len(self._choices) - round <= self._window:
            self._learner.learn(self._choices[round - 1], 1.0)
