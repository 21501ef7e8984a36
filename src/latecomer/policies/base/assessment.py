"""The scores and the probabilities of actions, as the next decision would have them; nothing is recorded."""

from copy import deepcopy

import numpy as np

from latecomer.core.state import Array
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.choice_probabilities import assess_actions
from latecomer.policies.base.compiled_state import CompiledState
from latecomer.policies.base.randomisation import Randomisation, find_randomised
from latecomer.policies.base.rng import PolicyRng, draw_count
from latecomer.policies.base.theta_samples import copy_if_closing


class Assessor:
    """A state like a policy's that chooses by known probabilities, into which the policy's statistics are copied.

    The random numbers are those that the policy's next decision would take, so that a randomised policy's
    probabilities are exactly those of its next decision.
    """

    def __init__(self, state: CompiledState, algorithm: Algorithm, randomisation: Randomisation) -> None:
        self._draw, self._dim, self.draws = algorithm.draw, state.dim, randomisation.draws
        self._state = state.make_with(find_randomised(algorithm), randomisation.numbers_when_on)
        row, numbers = np.empty(draw_count(self._draw, state.dim) + 1), np.empty(1)
        self._kernel = self._state.code.kernel(assess_actions, np.empty((1, state.dim)), 0, row, numbers, numbers)

    def assess(
        self, state: CompiledState, rng: PolicyRng, actions: Array, *, stamp: int, control: int | None
    ) -> tuple[Array, Array]:
        """Return the scores and the probabilities of actions in a decision at `stamp` of the policy with this state."""
        record = self._state.record.copy()
        for name in (state.record.dtype.names or ())[1:]:
            record[name] = state.record[name]
        if control is not None:
            record["control_index"] = control
        draws = PolicyRng(self._draw, deepcopy(rng.generator), spare=1).draws_of_one(self._dim)
        scores, probabilities = np.empty(len(actions)), np.empty(len(actions))
        ring = copy_if_closing(record, state.ring, stamp)
        self._kernel(record, ring, actions, stamp, draws, scores, probabilities)
        return scores, probabilities
