"""Rounds that are learned from when they close."""

from latecomer.core.compile import kernel
from latecomer.core.open_rounds import take_action
from latecomer.core.ridge import STEEP, absorb, mend_inverse
from latecomer.core.state import LANES, Ring, State
from latecomer.core.window import is_closed, move_B, slot_of


@kernel
def settle_closed(state: State, ring: Ring, now: int) -> tuple[int, float]:
    """What closes at `now` enters V and B; how many rounds, and their worth. Before `expire`, in deferred learning."""
    closed, worth = 0, 0.0
    for round in range(state.oldest, state.rounds + 1):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // LANES], slot % LANES
        if not is_closed(state, block.stamp[lane], now):
            break
        take_action(state, ring, slot)
        closed += 1
        if absorb(state, state.played) > STEEP:
            mend_inverse(state)
        if block.credit[lane] > 0.0:
            worth += block.credit[lane]
            move_B(state, ring, slot, block.credit[lane])
    return closed, worth
