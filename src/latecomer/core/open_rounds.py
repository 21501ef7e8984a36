"""Walks over the rounds that may still convert."""

import math

from latecomer.core.jit import kernel
from latecomer.core.ring import held_count, is_closed, slot_of, spanned_blocks
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Ring, State


@kernel
def possible_gain(state: State, ring: Ring, u: Array) -> float:
    """Σ (A_s·u)₊ over the open rounds that have not converted: the most that they can still add to B·u, O(m d)."""
    products, sums = state.products, state.sums
    for lane in range(ROUNDS_PER_BLOCK):
        sums[lane] = 0.0
    first, blocks = state.head // ROUNDS_PER_BLOCK, spanned_blocks(state.head, held_count(state))
    for i in range(blocks):
        low = state.head % ROUNDS_PER_BLOCK if i == 0 else 0
        high = (state.head + held_count(state) - 1) % ROUNDS_PER_BLOCK + 1 if i == blocks - 1 else ROUNDS_PER_BLOCK
        block = ring[first + i if first + i < ring.shape[0] else first + i - ring.shape[0]]
        action, credit = block.action, block.credit
        for lane in range(ROUNDS_PER_BLOCK):
            products[lane] = 0.0
        for j in range(u.shape[0]):
            u_j = u[j]
            for lane in range(ROUNDS_PER_BLOCK):
                products[lane] += action[j, lane] * u_j
        for lane in range(low, high):
            gain = products[lane] if math.isnan(credit[lane]) else 0.0
            sums[lane] += gain if gain > 0.0 else 0.0
    total = 0.0
    for lane in range(ROUNDS_PER_BLOCK):
        total += sums[lane]
    return total


@kernel
def take_action(state: State, ring: Ring, slot: int) -> None:
    """state.played = the action in that slot, side by side in memory."""
    action, lane = ring[slot // ROUNDS_PER_BLOCK].action, slot % ROUNDS_PER_BLOCK
    for i in range(state.played.shape[0]):
        state.played[i] = action[i, lane]


@kernel
def open_at(state: State, ring: Ring, now: int) -> int:
    """How many rounds could still convert at `now`."""
    count = state.pending
    for round in range(state.oldest, state.rounds + 1):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        if not is_closed(state, block.stamp[lane], now):
            break
        if math.isnan(block.credit[lane]):
            count -= 1
    return count
