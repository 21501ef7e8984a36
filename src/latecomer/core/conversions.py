"""Conversions and revocations: judged against the window and the grace, and added to B."""

import math

import numpy as np

from latecomer.core.age_buckets import DETECTS, bucket_of
from latecomer.core.forgetting import counted_weight, weight_at
from latecomer.core.jit import kernel
from latecomer.core.ring import is_closed, is_forgotten, slot_of, stamp_of
from latecomer.core.state import ROUNDS_PER_BLOCK, UNSTAMPED, Block, Ring, State, StateArray

REVOKED = -1.0
"""The credit of a round whose conversion was revoked."""

UNKNOWN_ARRIVAL = np.iinfo(np.int64).min
"""The arrival of a conversion whose time lies before its own decision: it counts, and its delay is unknown."""

ACCEPTED, DUPLICATE, LATE, UNKNOWN = 0, 1, 2, 3


@kernel
def judge_conversion(state: State, ring: Ring, round: int, now: int, reported: int) -> int:
    """Return the verdict on a conversion of `round` that occurred at `now` and is reported then; nothing changes.

    Without a grace, a conversion arrives with the latest decision at the earliest, and must arrive inside the window.
    With one, it must have occurred inside the window, and be reported inside the window and the grace.
    """
    verdict = judge_revocation(state, ring, round, now, reported)
    if state.grace > 0 and verdict < LATE and is_closed(state, stamp_of(state, ring, round), now):
        return LATE
    return verdict


@kernel
def judge_revocation(state: State, ring: Ring, round: int, now: int, reported: int) -> int:
    """Return the verdict as of a conversion: `DUPLICATE` where there is one to revoke, or was.

    With a grace, a revocation must be reported inside the window and the grace, whenever it occurred.
    """
    if round < 1 or round > state.rounds:
        return UNKNOWN
    if round < state.kept:
        return LATE
    slot = slot_of(state, ring, round)
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    if is_forgotten(state, block.stamp[lane], max(reported if state.grace > 0 else now, state.now)):
        return LATE
    return ACCEPTED if math.isnan(block.credit[lane]) else DUPLICATE


@kernel
def judge_conversion_of(states: StateArray, ring: Ring, round: int, now: int) -> int:
    """Return the verdict that a conversion of now would get if it occurred in time; nothing changes."""
    return judge_revocation(states[0], ring, round, now, now)


@kernel
def add_to_B(state: State, ring: Ring, slot: int, value: float) -> None:
    """B += w_s·value·A_s, for the round in that slot; w_s = 1 where nothing is forgotten."""
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    counted = value * counted_weight(state, block.stamp[lane]) if state.forgets else value
    for i in range(state.B.shape[0]):
        state.B[i] += counted * block.action[i, lane]
    if state.forgets == DETECTS:
        bucket = bucket_of(state, block.stamp[lane])
        if bucket >= 0:
            weighted = value * weight_at(state, block.stamp[lane])
            state.bucket_credited[bucket] += weighted
            for i in range(state.B.shape[0]):
                state.bucket_B[bucket, i] += weighted * block.action[i, lane]


@kernel
def is_in_window(state: State, round: int) -> bool:
    """Tell whether a held round is open; without a grace every one is."""
    return state.grace == 0 or round >= state.oldest


@kernel
def credit_round(state: State, ring: Ring, round: int, value: float, now: int) -> None:
    """Credit a held round that has not converted: B += value·A_s, at once or when the round closes.

    The delay of a round that has closed counts as the whole window: its conversion was seen no earlier.
    """
    slot, is_open = slot_of(state, ring, round), is_in_window(state, round)
    if not (is_open and state.learn_on_close):
        add_to_B(state, ring, slot, value)
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    block.credit[lane] = value
    before_decision = now != UNSTAMPED and now < block.stamp[lane]
    arrival = max(now, state.now) if is_open else block.stamp[lane] + state.span
    block.arrival[lane] = UNKNOWN_ARRIVAL if before_decision else arrival
    state.credited += value * counted_weight(state, block.stamp[lane]) if state.forgets else value
    if is_open:
        state.pending -= 1


@kernel
def change_credit(state: State, ring: Ring, slot: int, is_open: bool, credit: float) -> float:
    """Replace the credit of a round that has one, or had: B += (new − old)·A_s. Return the old value.

    `REVOKED` is a value of 0. The round's conversion keeps its delay.
    """
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    before = max(float(block.credit[lane]), 0.0)
    change = max(credit, 0.0) - before
    if not (is_open and state.learn_on_close):
        add_to_B(state, ring, slot, change)
    block.credit[lane] = credit
    state.credited += change * counted_weight(state, block.stamp[lane]) if state.forgets else change
    return before


@kernel
def credit_of(state: State, ring: Ring, round: int) -> float:
    """Return the credit of a held round: NaN while it has none, `REVOKED` once it was revoked."""
    slot = slot_of(state, ring, round)
    return float(ring[slot // ROUNDS_PER_BLOCK].credit[slot % ROUNDS_PER_BLOCK])


@kernel
def is_delay_known(block: Block, lane: int) -> bool:
    """Tell whether a round has a conversion that was not revoked and that came at a known time."""
    return bool(block.credit[lane] >= 0.0 and block.arrival[lane] != UNKNOWN_ARRIVAL)


@kernel
def delay_of(state: State, ring: Ring, round: int) -> int:
    """Return the delay of a held round's conversion, −1 where it is unknown."""
    slot = slot_of(state, ring, round)
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    return int(block.arrival[lane] - block.stamp[lane]) if is_delay_known(block, lane) else -1
