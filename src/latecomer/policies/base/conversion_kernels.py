"""Generic kernels: conversions and revocations, for whichever algorithm the state's type names.

Where a conversion comes in the grace of its round, or its value changes later, the algorithm has learnt from the round
at its closing: B is corrected, and `correct_closed_round` corrects the rest.
"""

from latecomer.core.conversions import (
    ACCEPTED,
    DUPLICATE,
    REVOKED,
    UNKNOWN,
    change_credit,
    credit_of,
    credit_round,
    delay_of,
    is_in_window,
    judge_conversion,
    judge_revocation,
)
from latecomer.core.jit import kernel, kernel_holding_gil
from latecomer.core.ring import slot_of
from latecomer.core.state import Array, Integers, Ring, State, StateArray
from latecomer.policies.base.algorithm import correct_closed_round, correct_set


@kernel
def apply_conversion(states: StateArray, ring: Ring, round: int, value: float, now: int, reported: int) -> int:
    """Judge a conversion that occurred at `now` and, if it is accepted, credit it."""
    state = states[0]
    verdict = judge_conversion(state, ring, round, now, reported)
    if verdict == ACCEPTED:
        credit_round(state, ring, round, value, now)
        if not is_in_window(state, round):
            slot = slot_of(state, ring, round)
            correct_closed_round(state, ring, slot, value, delay_of(state, ring, round))
            correct_set(state, ring, slot, 0.0, value)
    return verdict


@kernel_holding_gil
def apply_conversion_holding_gil(
    states: StateArray, ring: Ring, round: int, value: float, now: int, reported: int
) -> int:
    """Judge and apply one conversion, without releasing Python's lock."""
    return apply_conversion(states, ring, round, value, now, reported)


@kernel
def apply_revocation(states: StateArray, ring: Ring, round: int, now: int, reported: int) -> int:
    """Revoke a credited conversion for good: a later conversion of the round is a duplicate."""
    state = states[0]
    verdict = judge_revocation(state, ring, round, now, reported)
    if verdict == ACCEPTED:
        return UNKNOWN  # there is no conversion to revoke
    if verdict == DUPLICATE and credit_of(state, ring, round) != REVOKED:
        replace_credit(state, ring, slot_of(state, ring, round), round >= state.oldest, REVOKED)
        return ACCEPTED
    return verdict


@kernel
def replace_credit(state: State, ring: Ring, slot: int, is_open: bool, credit: float) -> None:
    """Replace the credit of a converted round by another, whenever it closed; no judgement is made.

    The ring is the state's, or one that has a round alone which the state's no longer holds.
    """
    before, after = change_credit(state, ring, slot, is_open, credit), max(credit, 0.0)
    if not is_open:
        correct_closed_round(state, ring, slot, after - before, -1)
        correct_set(state, ring, slot, before, after)


@kernel
def apply_correction(states: StateArray, ring: Ring, slot: int, is_open: bool, credit: float) -> None:
    """Replace the credit of a converted round: `replace_credit` as an entry point."""
    replace_credit(states[0], ring, slot, is_open, credit)


@kernel
def apply_conversions(
    states: StateArray,
    ring: Ring,
    rounds: Integers,
    values: Array,
    stamps: Integers,
    reported: Integers,
    verdicts: Integers,
    delays: Integers,
) -> None:
    """Apply conversions in their order; fill in the verdicts and the delays of accepted ones, −1 where unknown."""
    for i in range(rounds.shape[0]):
        verdicts[i] = apply_conversion(states, ring, rounds[i], values[i], stamps[i], reported[i])
        if verdicts[i] == ACCEPTED:
            delays[i] = delay_of(states[0], ring, rounds[i])
