"""Sums and counts over the rounds that may still convert."""

import math

from latecomer.core.forgetting import weight_at
from latecomer.core.jit import kernel
from latecomer.core.ring import is_closing, slot_of, spanned_blocks, window_count
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Ring, State


@kernel
def possible_gain(state: State, ring: Ring, u: Array) -> float:
    """Sum (A_s·u)₊ over the open rounds that have not converted: the most that they can still add to B·u. O(m·d)."""
    products, sums = state.products, state.sums
    for lane in range(ROUNDS_PER_BLOCK):
        sums[lane] = 0.0
    first, blocks = state.head // ROUNDS_PER_BLOCK, spanned_blocks(state.head, window_count(state))
    for i in range(blocks):
        low = state.head % ROUNDS_PER_BLOCK if i == 0 else 0
        high = (state.head + window_count(state) - 1) % ROUNDS_PER_BLOCK + 1 if i == blocks - 1 else ROUNDS_PER_BLOCK
        block = ring[first + i if first + i < ring.shape[0] else first + i - ring.shape[0]]
        action, credit, stamp = block.action, block.credit, block.stamp
        for lane in range(ROUNDS_PER_BLOCK):
            products[lane] = 0.0
        for j in range(u.shape[0]):
            u_j = u[j]
            for lane in range(ROUNDS_PER_BLOCK):
                products[lane] += action[j, lane] * u_j
        for lane in range(low, high):
            gain = products[lane] if math.isnan(credit[lane]) else 0.0
            if state.forgets:
                gain *= weight_at(state, stamp[lane])
            sums[lane] += gain if gain > 0.0 else 0.0
    total = 0.0
    for lane in range(ROUNDS_PER_BLOCK):
        total += sums[lane]
    return total


@kernel
def copy_action(state: State, ring: Ring, slot: int) -> None:
    """Copy the action in that slot to state.last_action, where its numbers lie side by side."""
    action, lane = ring[slot // ROUNDS_PER_BLOCK].action, slot % ROUNDS_PER_BLOCK
    for i in range(state.last_action.shape[0]):
        state.last_action[i] = action[i, lane]


@kernel
def count_open(state: State, ring: Ring, now: int) -> int:
    """Count the rounds that could still convert at `now`."""
    count, round = state.pending, state.oldest
    while is_closing(state, ring, round, now):
        slot = slot_of(state, ring, round)
        if math.isnan(ring[slot // ROUNDS_PER_BLOCK].credit[slot % ROUNDS_PER_BLOCK]):
            count -= 1
        round += 1
    return count
