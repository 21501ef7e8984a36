"""Rounds that are learned from when they close."""

from latecomer.core.jit import kernel
from latecomer.core.open_rounds import take_action
from latecomer.core.ridge import STEEP, rank_one_update, refresh_inverse_if_drifted
from latecomer.core.ring import is_closed, move_B, slot_of
from latecomer.core.state import ROUNDS_PER_BLOCK, Ring, State


@kernel
def learn_from_closed_rounds(state: State, ring: Ring, now: int) -> tuple[int, float]:
    """What closes at `now` enters V and B; how many rounds, and their worth. Before `expire`, in deferred learning."""
    closed, worth = 0, 0.0
    for round in range(state.oldest, state.rounds + 1):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        if not is_closed(state, block.stamp[lane], now):
            break
        take_action(state, ring, slot)
        closed += 1
        if rank_one_update(state, state.played) > STEEP:
            refresh_inverse_if_drifted(state)
        if block.credit[lane] > 0.0:
            worth += block.credit[lane]
            move_B(state, ring, slot, block.credit[lane])
    return closed, worth
