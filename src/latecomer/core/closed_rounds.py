"""Learning from a round when it closes, and not before."""

import math

from latecomer.core.conversions import add_to_B
from latecomer.core.forgetting import weight_at
from latecomer.core.jit import kernel
from latecomer.core.open_rounds import copy_action
from latecomer.core.ridge_statistics import STEEP, rank_one_update, refresh_inverse_if_drifted
from latecomer.core.ring import is_closing, slot_of
from latecomer.core.state import ROUNDS_PER_BLOCK, Ring, State


@kernel
def learn_from_closed_rounds(state: State, ring: Ring, now: int) -> tuple[float, float]:
    """Add the rounds that close at `now` to V and B, weighed by age where the state forgets.

    Return how many they are and the sum of their values, so weighed.

    It comes before `expire`, in algorithms that learn on close.
    """
    round, count, value = state.oldest, 0.0, 0.0
    while is_closing(state, ring, round, now):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        copy_action(state, ring, slot)
        weight = weight_at(state, block.stamp[lane])
        if state.forgets:
            root = math.sqrt(weight)
            for i in range(state.last_action.shape[0]):
                state.last_action[i] *= root
        if rank_one_update(state, state.last_action) > STEEP:
            refresh_inverse_if_drifted(state)
        if block.credit[lane] > 0.0:
            value += weight * block.credit[lane] if state.forgets else block.credit[lane]
            add_to_B(state, ring, slot, block.credit[lane])
        count += weight
        round += 1
    return count, value
