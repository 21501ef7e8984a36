"""Learning from a round when it closes, and not before."""

from latecomer.core.conversions import add_to_B
from latecomer.core.jit import kernel
from latecomer.core.open_rounds import copy_action
from latecomer.core.ridge_statistics import STEEP, rank_one_update, refresh_inverse_if_drifted
from latecomer.core.ring import is_closing, slot_of
from latecomer.core.state import ROUNDS_PER_BLOCK, Ring, State


@kernel
def learn_from_closed_rounds(state: State, ring: Ring, now: int) -> tuple[int, float]:
    """Add the rounds that close at `now` to V and B; return how many they are and the sum of their values.

    It comes before `expire`, in algorithms that learn on close.
    """
    round, value = state.oldest, 0.0
    while is_closing(state, ring, round, now):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        copy_action(state, ring, slot)
        if rank_one_update(state, state.last_action) > STEEP:
            refresh_inverse_if_drifted(state)
        if block.credit[lane] > 0.0:
            value += block.credit[lane]
            add_to_B(state, ring, slot, block.credit[lane])
        round += 1
    return round - state.oldest, value
