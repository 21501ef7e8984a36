"""A stage of a world: a signal before the conversion, such as a click, with its own law of delays."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.delays import DelayLaw, draw
from latecomer.errors import InputError
from latecomer.validation import check_share


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A signal before the conversion. Exactly one of `precision` and `share` is given.

    Parameters
    ----------
    delays
        The law of its delays; a stage never comes after the conversion of its decision.
    precision
        An informative stage: every conversion passes through it, and so large a share of those that reach it converts,
        whatever the action. An action of mean p reaches it with probability p over the precision, 1 at most.
    share
        A stage that tells nothing: reached with this probability, whatever the action and the conversion.
    """

    delays: DelayLaw
    precision: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if (self.precision is None) == (self.share is None):
            raise InputError("a stage must have a precision, or a share; give one of them", field="stage")
        for name in ("precision", "share"):
            if getattr(self, name) is not None and not check_share(f"stage: {name}", getattr(self, name)):
                raise InputError(f"stage: {name} must be above 0", field="stage")

    def find_probability(self, mean: float, *, converts: bool) -> float:
        """Return the probability that a decision reaches it, given its mean and whether it converts."""
        if self.precision is None:
            return float(self.share or 0.0)
        return 1.0 if converts or mean >= 1.0 else max(0.0, (min(1.0, mean / self.precision) - mean) / (1.0 - mean))


class StageDraws(NamedTuple):
    """The random numbers of a stage in one run: a uniform number and a delay for each round."""

    stage: Stage
    uniforms: Array
    delays: Integers

    def find_arrival(self, t: int, mean: float, *, converts: bool, delay: int) -> int | None:
        """Return when round t reaches the stage; None where it does not. `delay` is that of its conversion."""
        if self.uniforms[t] >= self.stage.find_probability(mean, converts=converts):
            return None
        late = int(self.delays[t])
        return t + (min(late, delay) if converts else late)


def draw_stage(stage: Stage, generator: np.random.Generator, horizon: int) -> StageDraws:
    """Draw a run's numbers."""
    return StageDraws(stage, generator.random(horizon), draw(stage.delays, generator, horizon))
