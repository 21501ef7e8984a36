"""The window: a growing ring of the rounds that may still convert, and of those in their grace.

Rounds are numbered 1, 2, … without gaps, so a round's slot follows from its number and no index is needed; its lane is
always (round − 1) mod `ROUNDS_PER_BLOCK`, and no block holds both ends, so that sums over the ring do not depend on
its size. A round of stamp s is closed at stamp `now` when now − s > span: `is_closed` alone has that rule.

The window's rounds are `oldest` to `rounds`. With a grace, closed rounds stay behind them, `kept` to `oldest` − 1, for
as long: nothing sums over these, and a conversion that occurred in time still finds its action there.
"""

import math

import numpy as np

from latecomer.core.jit import kernel
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Ring, State

OPEN = np.nan
"""The credit of a round that has not converted."""


@kernel
def is_closed(state: State, stamp: int, now: int) -> bool:
    """Tell whether a round of this stamp has closed: an age of exactly the span is still open."""
    return now - stamp > state.span


@kernel
def is_forgotten(state: State, stamp: int, now: int) -> bool:
    """Tell whether a round of this stamp has closed and its grace has passed too."""
    return now - stamp > state.span + state.grace


@kernel
def window_count(state: State) -> int:
    """Count the rounds of the window."""
    return state.rounds - state.oldest + 1


@kernel
def held_count(state: State) -> int:
    """Count the rounds that the ring holds, those in their grace included."""
    return state.rounds - state.kept + 1


@kernel
def slot_count(ring: Ring) -> int:
    """Count the slots of the ring."""
    return ring.shape[0] * ROUNDS_PER_BLOCK  # type: ignore[no-any-return]


@kernel
def is_full(state: State, ring: Ring) -> bool:
    """Tell whether the next round would land in the block of the oldest one held."""
    return first_lane(state) + held_count(state) >= slot_count(ring)


@kernel
def first_lane(state: State) -> int:
    """Return the lane of the oldest round that the ring holds: it follows from its number."""
    return (state.kept - 1) % ROUNDS_PER_BLOCK


@kernel
def slot_of(state: State, ring: Ring, round: int) -> int:
    """Return the slot of a round that the ring holds, or of the next one."""
    slot = state.head + (round - state.oldest)
    if state.grace > 0 and slot < 0:  # in its grace
        return slot + slot_count(ring)
    return slot if slot < slot_count(ring) else slot - slot_count(ring)  # a division would cost more than the rest


@kernel
def stamp_of(state: State, ring: Ring, round: int) -> int:
    """Return the stamp of a round that the ring holds."""
    slot = slot_of(state, ring, round)
    return int(ring[slot // ROUNDS_PER_BLOCK].stamp[slot % ROUNDS_PER_BLOCK])


@kernel
def is_closing(state: State, ring: Ring, round: int, now: int) -> bool:
    """Tell whether a round, the oldest held or a later one, is held and closed at `now`.

    Stamps only grow: those that close are the oldest, and the first that does not close ends a loop over them.
    """
    return round <= state.rounds and is_closed(state, stamp_of(state, ring, round), now)


@kernel
def add_width(state: State, term: float) -> None:
    """width_sum += term, with Neumaier's compensation: a million additions and removals lose nothing."""
    total = state.width_sum + term
    if abs(state.width_sum) >= abs(term):
        state.width_lost += (state.width_sum - total) + term
    else:
        state.width_lost += (term - total) + state.width_sum
    state.width_sum = total


@kernel
def expire(state: State, ring: Ring, now: int) -> None:
    """Close the rounds that are closed at `now`, and drop those whose grace has passed too."""
    while is_closing(state, ring, state.oldest, now):
        block, lane = ring[state.head // ROUNDS_PER_BLOCK], state.head % ROUNDS_PER_BLOCK
        add_width(state, -math.sqrt(block.norm[lane]))
        if math.isnan(block.credit[lane]):
            state.pending -= 1
        block.norm[lane] = 0.0  # a closed lane adds nothing to the exact width
        state.oldest += 1
        state.head = state.head + 1 if state.head + 1 < slot_count(ring) else 0
    if state.oldest > state.rounds:
        state.width_sum = state.width_lost = 0.0
    if state.grace == 0:
        state.kept = state.oldest
    else:
        while state.kept < state.oldest and is_forgotten(state, stamp_of(state, ring, state.kept), now):
            state.kept += 1


@kernel
def append_round(state: State, ring: Ring, action: Array, stamp: int, norm: float) -> None:
    """Add the round just played to the ring, open."""
    state.rounds += 1
    state.pending += 1
    slot = slot_of(state, ring, state.rounds)
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    for i in range(state.B.shape[0]):
        block.action[i, lane] = action[i]
    block.norm[lane] = norm
    block.credit[lane] = OPEN
    block.stamp[lane] = stamp
    state.now = stamp
    add_width(state, math.sqrt(norm))


@kernel
def spanned_blocks(head: int, count: int) -> int:
    """Count the blocks, from the head's on, that hold a round."""
    return (head % ROUNDS_PER_BLOCK + count + ROUNDS_PER_BLOCK - 1) // ROUNDS_PER_BLOCK


@kernel
def is_sparse(needed: int, blocks: int) -> bool:
    """Tell whether a ring holds less than a quarter of its capacity, as after a burst."""
    return 4 * (needed + 1) < blocks
