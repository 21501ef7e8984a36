"""A policy's random numbers: a generator of its own, read in the order in which decisions are made."""

from enum import Enum
from typing import Any

import numpy as np

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.validation import check_integer

Seed = int | np.random.Generator | None


class Draw(Enum):
    """The random numbers that one decision takes."""

    NOTHING = "nothing"
    NORMAL = "one standard normal per dimension"
    NORMAL_AND_ONE = "one standard normal per dimension, and one more"
    UNIFORM = "one uniform number in [0, 1)"


def draw_count(draw: Draw, dim: int) -> int:
    """Return how many random numbers one decision takes."""
    return {Draw.NOTHING: 0, Draw.NORMAL: dim, Draw.NORMAL_AND_ONE: dim + 1, Draw.UNIFORM: 1}[draw]


class PolicyRng:
    """A seeded generator. The draws of many decisions at once are those of as many single ones.

    A decision takes `spare` numbers more than `draw` says, to seed a generator inside kernels.
    """

    def __init__(self, draw: Draw, seed: Seed, *, spare: int = 0) -> None:
        self.draw, self._spare = draw, spare
        if isinstance(seed, np.random.Generator):
            self.generator = seed
        elif seed is None:
            self.generator = np.random.default_rng()
        else:
            try:
                self.generator = np.random.default_rng(check_integer("seed", seed, least=0))
            except InputError as error:
                raise InputError(
                    f"{error}; an int, a numpy.random.Generator or None will do", field=error.field
                ) from None

    def draws_of_one(self, dim: int) -> Array:
        """Return one decision's draws, where it draws anything."""
        drawn: Array = self.draws(1, dim)[0]
        return drawn

    def draws(self, decisions: int, dim: int) -> Array:
        """Return the draws of so many decisions, a row each."""
        if self.draw is Draw.NORMAL:  # one comparison after the other: a look-up by an enum takes as long as the draws
            return self.generator.standard_normal((decisions, dim + self._spare))
        if self.draw is Draw.NOTHING:
            return self.generator.random((decisions, self._spare)) if self._spare else np.empty((decisions, 0))
        shape = (decisions, draw_count(self.draw, dim) + self._spare)
        return self.generator.random(shape) if self.draw is Draw.UNIFORM else self.generator.standard_normal(shape)

    def state(self) -> dict[str, Any]:
        """Return the generator's state as plain data."""
        return _plain(self.generator.bit_generator.state)  # type: ignore[no-any-return]

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where a saved generator stopped."""
        bit_generator = getattr(np.random, state["bit_generator"])()
        bit_generator.state = _arrays(state)
        self.generator = np.random.Generator(bit_generator)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.name}
    return value.item() if isinstance(value, np.generic) else value


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        if "array" in value:
            return np.array(value["array"], value["dtype"])
        return {key: _arrays(entry) for key, entry in value.items()}
    return value
