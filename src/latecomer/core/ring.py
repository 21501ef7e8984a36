"""The window: a growing ring of the rounds that may still convert.

Rounds are numbered 1, 2, … without gaps, so a round's slot follows from its number and no index is needed; its lane is
always (round − 1) mod `ROUNDS_PER_BLOCK`, and no block holds both ends, so that sums over the ring do not depend on
its size. A round of stamp s is closed at stamp `now` when now − s > span: here, and nowhere else, is that rule written.
"""

import math

import numpy as np

from latecomer.core.jit import kernel, kernel_holding_gil
from latecomer.core.state import ROUNDS_PER_BLOCK, UNSTAMPED, Array, Block, Integers, Ring, State, StateArray, new_ring

OPEN = np.nan
REVOKED = -1.0

UNKNOWN_ARRIVAL = np.iinfo(np.int64).min
"""The arrival of a conversion whose time lies before its own decision: it counts, and its delay is unknown."""

ACCEPTED, DUPLICATE, LATE, UNKNOWN = 0, 1, 2, 3


@kernel
def is_closed(state: State, stamp: int, now: int) -> bool:
    """Exactly the span still counts."""
    return now - stamp > state.span


@kernel
def held_count(state: State) -> int:
    """How many rounds the ring holds."""
    return state.rounds - state.oldest + 1


@kernel
def slot_count(ring: Ring) -> int:
    """How many rounds there is room for."""
    return int(ring.shape[0]) * ROUNDS_PER_BLOCK


@kernel
def is_full(state: State, ring: Ring) -> bool:
    """Whether the next round would land in the block of the oldest."""
    return state.head % ROUNDS_PER_BLOCK + held_count(state) >= slot_count(ring)


@kernel
def slot_of(state: State, ring: Ring, round: int) -> int:
    """Where a round that the ring holds (or the next one) lives."""
    slot = state.head + (round - state.oldest)
    return slot if slot < slot_count(ring) else slot - slot_count(ring)  # a division would cost more than the rest


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
    """Forget the rounds that are closed at `now`."""
    while state.oldest <= state.rounds:
        block = ring[state.head // ROUNDS_PER_BLOCK]
        lane = state.head % ROUNDS_PER_BLOCK
        if not is_closed(state, block.stamp[lane], now):
            return
        add_width(state, -math.sqrt(block.norm[lane]))
        if math.isnan(block.credit[lane]):
            state.pending -= 1
        block.norm[lane] = 0.0  # an empty lane adds nothing to the exact width
        state.oldest += 1
        state.head = state.head + 1 if state.head + 1 < slot_count(ring) else 0
    state.width_sum = state.width_lost = 0.0


@kernel
def append_round(state: State, ring: Ring, action: Array, stamp: int, norm: float) -> None:
    """The round just played joins the ring, open."""
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
def verdict(state: State, ring: Ring, round: int, now: int) -> int:
    """What a conversion of `round` that arrives at `now`, or with the latest decision, would meet; nothing changes."""
    if round < 1 or round > state.rounds:
        return UNKNOWN
    if round < state.oldest:
        return LATE
    slot = slot_of(state, ring, round)
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    if is_closed(state, block.stamp[lane], max(now, state.now)):
        return LATE
    return ACCEPTED if math.isnan(block.credit[lane]) else DUPLICATE


@kernel
def move_B(state: State, ring: Ring, slot: int, value: float) -> None:
    """B += value·A_s."""
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    for i in range(state.B.shape[0]):
        state.B[i] += value * block.action[i, lane]


@kernel
def apply_conversion(cell: StateArray, ring: Ring, round: int, value: float, now: int) -> int:
    """A conversion arrives: B += value·A_s when it is accepted (or later, where that is deferred)."""
    state = cell[0]
    answer = verdict(state, ring, round, now)
    if answer == ACCEPTED:
        slot = slot_of(state, ring, round)
        if not state.deferred:
            move_B(state, ring, slot, value)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        block.credit[lane] = value
        before_decision = now != UNSTAMPED and now < block.stamp[lane]
        block.arrival[lane] = UNKNOWN_ARRIVAL if before_decision else max(now, state.now)
        state.pending -= 1
        state.credited += value
    return answer


brief_credit = kernel_holding_gil(apply_conversion.py_func)  # type: ignore[attr-defined]


@kernel
def apply_revocation(cell: StateArray, ring: Ring, round: int, now: int) -> int:
    """A credited conversion is taken back, for good: what converts again afterwards is a duplicate."""
    state = cell[0]
    answer = verdict(state, ring, round, now)
    if answer == ACCEPTED:
        return UNKNOWN  # open: there is no conversion to take back
    if answer == DUPLICATE:
        slot = slot_of(state, ring, round)
        value = ring[slot // ROUNDS_PER_BLOCK].credit[slot % ROUNDS_PER_BLOCK]
        if value != REVOKED:
            if not state.deferred:
                move_B(state, ring, slot, -value)
            ring[slot // ROUNDS_PER_BLOCK].credit[slot % ROUNDS_PER_BLOCK] = REVOKED
            state.credited -= value
            return ACCEPTED
    return answer


@kernel
def is_delay_known(block: Block, lane: int) -> bool:
    """Tell whether a round has a conversion that stands, and came at a known time."""
    return bool(block.credit[lane] >= 0.0 and block.arrival[lane] != UNKNOWN_ARRIVAL)


@kernel
def delay_of(state: State, ring: Ring, round: int) -> int:
    """The delay of a conversion that a held round has, −1 where it is unknown."""
    slot = slot_of(state, ring, round)
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    return int(block.arrival[lane] - block.stamp[lane]) if is_delay_known(block, lane) else -1


@kernel
def apply_conversions(
    cell: StateArray, ring: Ring, rounds: Integers, values: Array, stamps: Integers, answers: Integers, delays: Integers
) -> None:
    """Apply conversions one after the other; give the delays of the accepted ones, −1 where unknown."""
    for i in range(rounds.shape[0]):
        answers[i] = apply_conversion(cell, ring, rounds[i], values[i], stamps[i])
        if answers[i] == ACCEPTED:
            delays[i] = delay_of(cell[0], ring, rounds[i])


@kernel
def spanned_blocks(head: int, count: int) -> int:
    """How many blocks, counted from the head's, hold a round."""
    return (head % ROUNDS_PER_BLOCK + count + ROUNDS_PER_BLOCK - 1) // ROUNDS_PER_BLOCK


@kernel
def is_sparse(needed: int, blocks: int) -> bool:
    """After a burst: whether a ring holds less than a quarter of what it could."""
    return 4 * (needed + 1) < blocks


def resized(cell: StateArray, ring: Ring, blocks: int) -> Ring:
    """The same rounds in a ring of `blocks` blocks, the oldest in the first."""
    head, count = int(cell["head"][0]), int(cell["rounds"][0] - cell["oldest"][0] + 1)
    first, spanned = head // ROUNDS_PER_BLOCK, spanned_blocks(head, count)
    to_end = min(spanned, len(ring) - first)
    other = new_ring(len(cell["B"][0]), blocks)
    other[:to_end] = ring[first : first + to_end]
    other[to_end:spanned] = ring[: spanned - to_end]
    cell["head"] = head % ROUNDS_PER_BLOCK
    return other
