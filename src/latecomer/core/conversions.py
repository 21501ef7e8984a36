"""Conversions and revocations: judged against the window, and applied to B where they are accepted."""

import math

import numpy as np

from latecomer.core.jit import kernel, kernel_holding_gil
from latecomer.core.ring import is_closed, slot_of
from latecomer.core.state import ROUNDS_PER_BLOCK, UNSTAMPED, Array, Block, Integers, Ring, State, StateArray

REVOKED = -1.0
"""The credit of a round whose conversion was revoked."""

UNKNOWN_ARRIVAL = np.iinfo(np.int64).min
"""The arrival of a conversion whose time lies before its own decision: it counts, and its delay is unknown."""

ACCEPTED, DUPLICATE, LATE, UNKNOWN = 0, 1, 2, 3


@kernel
def judge_conversion(state: State, ring: Ring, round: int, now: int) -> int:
    """Return the verdict on a conversion of `round` that arrives at `now`; nothing changes.

    A conversion arrives with the latest decision at the earliest.
    """
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
def judge_conversion_of(states: StateArray, ring: Ring, round: int, now: int) -> int:
    """Return the verdict that a conversion would get; nothing changes."""
    return judge_conversion(states[0], ring, round, now)


@kernel
def add_to_B(state: State, ring: Ring, slot: int, value: float) -> None:
    """B += value·A_s, for the round in that slot."""
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    for i in range(state.B.shape[0]):
        state.B[i] += value * block.action[i, lane]


@kernel
def apply_conversion(states: StateArray, ring: Ring, round: int, value: float, now: int) -> int:
    """Judge a conversion and, if it is accepted, credit it: B += value·A_s, at once or when the round closes."""
    state = states[0]
    verdict = judge_conversion(state, ring, round, now)
    if verdict == ACCEPTED:
        slot = slot_of(state, ring, round)
        if not state.learn_on_close:
            add_to_B(state, ring, slot, value)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        block.credit[lane] = value
        before_decision = now != UNSTAMPED and now < block.stamp[lane]
        block.arrival[lane] = UNKNOWN_ARRIVAL if before_decision else max(now, state.now)
        state.pending -= 1
        state.credited += value
    return verdict


@kernel_holding_gil
def apply_conversion_holding_gil(states: StateArray, ring: Ring, round: int, value: float, now: int) -> int:
    """Judge and apply one conversion, without releasing Python's lock."""
    return apply_conversion(states, ring, round, value, now)


@kernel
def apply_revocation(states: StateArray, ring: Ring, round: int, now: int) -> int:
    """Revoke a credited conversion for good: a later conversion of the round is a duplicate."""
    state = states[0]
    verdict = judge_conversion(state, ring, round, now)
    if verdict == ACCEPTED:
        return UNKNOWN  # open: there is no conversion to revoke
    if verdict == DUPLICATE:
        slot = slot_of(state, ring, round)
        value = ring[slot // ROUNDS_PER_BLOCK].credit[slot % ROUNDS_PER_BLOCK]
        if value != REVOKED:
            if not state.learn_on_close:
                add_to_B(state, ring, slot, -value)
            ring[slot // ROUNDS_PER_BLOCK].credit[slot % ROUNDS_PER_BLOCK] = REVOKED
            state.credited -= value
            return ACCEPTED
    return verdict


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


@kernel
def apply_conversions(
    states: StateArray,
    ring: Ring,
    rounds: Integers,
    values: Array,
    stamps: Integers,
    verdicts: Integers,
    delays: Integers,
) -> None:
    """Apply conversions in their order; fill in the verdicts and the delays of accepted ones, −1 where unknown."""
    for i in range(rounds.shape[0]):
        verdicts[i] = apply_conversion(states, ring, rounds[i], values[i], stamps[i])
        if verdicts[i] == ACCEPTED:
            delays[i] = delay_of(states[0], ring, rounds[i])
