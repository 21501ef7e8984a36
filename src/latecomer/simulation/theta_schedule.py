"""A θ that changes: given at some rounds, it jumps at each of them, or drifts from one to the next."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.validation import check_choice, check_integer, short_repr

Change = Literal["jump", "drift"]


class ThetaSchedule:
    """θ of every round, from a mapping of rounds (the first is 0) to vectors.

    Parameters
    ----------
    given
        {0: θ, 5000: θ'}: rounds to vectors of one length; 0 must be among them.
    change
        "jump": θ stays until the next given round; "drift": it moves towards that one's by equal steps. After the last
        given round it stays.
    """

    def __init__(self, given: Mapping[int, npt.ArrayLike], change: Change = "jump") -> None:
        self.change: Change = check_choice("change", change, ("jump", "drift"))  # type: ignore[assignment]
        rounds = sorted(check_integer("theta: a round", round, least=0) for round in given)
        if not rounds or rounds[0] != 0:
            raise InputError(f"theta must be given at round 0 where it changes; got rounds {rounds}", field="theta")
        self.rounds = np.array(rounds, np.int64)
        try:
            self.vectors: Array = np.array([given[round] for round in rounds], np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"theta must be vectors of one length; got {short_repr(dict(given))}", field="theta"
            ) from None

    def at(self, rounds: npt.NDArray[np.int64]) -> Array:
        """Return θ of each of these rounds, a row each."""
        place = np.searchsorted(self.rounds, rounds, side="right") - 1
        if self.change == "jump":
            return np.asarray(self.vectors[place])
        return np.column_stack([np.interp(rounds, self.rounds, column) for column in self.vectors.T])

    def mean_rewards(self, sets: Array, first: int, intercept: float, *, logistic: bool) -> Array:
        """Return the mean reward of each action of each set, (rounds, K); the first set is that of round `first`."""
        thetas, means = self.at(np.arange(first, first + len(sets))), np.full(sets.shape[:2], intercept)
        for i in range(sets.shape[2]):
            means += sets[:, :, i] * thetas[:, i, None]
        return np.asarray(1.0 / (1.0 + np.exp(-means)) if logistic else means)

    @property
    def given(self) -> dict[int, list[float]]:
        """θ by the round from which it is so, as a world takes it."""
        return {int(round): vector.tolist() for round, vector in zip(self.rounds, self.vectors, strict=True)}

    def __repr__(self) -> str:
        return repr(self.given)
