"""Generic kernels: a decision, live or replayed, for whichever algorithm the state's type names."""

import numpy as np

from latecomer.core.action_summary import Shorts
from latecomer.core.age_buckets import DETECTS, add_to_bucket
from latecomer.core.forgetting import scale_statistics, step_factor
from latecomer.core.jit import kernel, kernel_holding_gil
from latecomer.core.linalg.products import has_lengths_below
from latecomer.core.ridge_statistics import is_check_due, rank_one_update, refresh_inverse_if_drifted
from latecomer.core.ring import (
    append_round,
    expire,
    first_lane,
    held_count,
    is_closing,
    is_full,
    is_sparse,
    slot_of,
    spanned_blocks,
)
from latecomer.core.state import ROUNDS_PER_BLOCK, UNSTAMPED, Array, Integers, Ring, State, StateArray
from latecomer.core.width import renew_norms, shrink_norms
from latecomer.policies.base.algorithm import (
    advance_set,
    advance_time,
    begin_round,
    choose,
    estimate,
    forget_own,
    latest_summary,
    observe_actions,
    observe_summary,
    pending_width,
    record_in_set,
    signed_propensity,
    width,
    window_term,
)

NORM_LIMIT = 1.0 + 1e-6
"""The theory asks for norms up to 1; the rest allows for rounding, single precision included."""

RESIZE, UNFIT = -1, -2
"""In place of an index: the ring has the wrong size; the action set is not as compiled code needs it."""

LARGE = 100_000
"""K·d² from which a BLAS would start threads of its own, and other Python threads should not wait."""


@kernel
def is_admissible(actions: Array) -> bool:
    """Tell whether every action is finite and of norm at most 1: a NaN fails every comparison."""
    return has_lengths_below(actions, NORM_LIMIT * NORM_LIMIT)


@kernel
def is_plain_array(actions: Array, dim: int) -> bool:
    """Tell whether an array is as compiled code needs it: K > 0 rows of d doubles, aligned, one after the other.

    An array's type in compiled code does not say so, but its strides do.
    """
    by_row, by_column = actions.strides[0], actions.strides[1]
    in_a_row = (by_column == 8 or dim == 1) and (by_row == 8 * dim or actions.shape[0] == 1)
    return actions.shape[0] > 0 and actions.shape[1] == dim and in_a_row and actions.ctypes.data % 8 == 0


@kernel_holding_gil
def is_admissible_holding_gil(actions: Array, dim: int) -> bool:
    """Tell whether a set is plain and admissible."""
    return is_plain_array(actions, dim) and is_admissible(actions)


@kernel
def is_large(count: int, dim: int) -> bool:
    """Tell whether a decision takes long enough that Python's lock should be released."""
    return count * dim * dim >= LARGE


@kernel
def record(state: State, ring: Ring, action: Array, stamp: int) -> None:
    """Add the chosen action to V and to the window."""
    c = 0.0 if state.learn_on_close else rank_one_update(state, action)
    norm = window_term(state, c)  # buffered: it stays as it is
    if state.refresh_norms:
        shrink_norms(state, ring, c)
        norm = c / (1.0 + c)  # ‖A_s‖² in V_{s+1}⁻¹
    append_round(state, ring, action, stamp, norm)
    record_in_set(state, ring, action)
    if state.forgets:
        state.weight_sum += 1.0
    if state.forgets == DETECTS:
        add_to_bucket(state, action, stamp)
    if is_check_due(state, c):
        has_drifted = refresh_inverse_if_drifted(state)
        if state.refresh_norms and has_drifted:
            renew_norms(state, ring)


@kernel
def forget(state: State, ring: Ring, now: int) -> None:
    """Weigh every round by its age at `now`, where the state forgets."""
    if state.forgets:
        factor = step_factor(state, now)
        if factor != 1.0:
            scale_statistics(state, factor)
            forget_own(state, factor)
            if state.refresh_norms:
                renew_norms(state, ring)


@kernel
def start_round(state: State, ring: Ring, stamp: int, draws: Array | None) -> int:
    """Bring the state up to a decision at `stamp`, and return the stamp; the action set has been observed."""
    if stamp == UNSTAMPED:
        stamp = state.rounds + 1
    forget(state, ring, stamp)
    advance_time(state, ring, stamp)
    advance_set(state, ring, stamp)
    begin_round(state, ring, draws)
    expire(state, ring, stamp)
    return stamp


@kernel
def decide_and_record(state: State, ring: Ring, actions: Array, stamp: int, draws: Array | None, scores: Array) -> int:
    """Decide and record: return the index of the chosen action, or `RESIZE` where the ring has no room."""
    if is_full(state, ring):
        return RESIZE
    observe_actions(state, actions)
    stamp = start_round(state, ring, stamp, draws)
    index = choose(state, ring, actions, draws, scores)
    action = actions[index]
    if state.frozen:
        action, state.last_frozen = np.zeros(action.shape[0]), state.rounds + 1
    record(state, ring, action, stamp)
    return index


@kernel
def _decide(states: StateArray, ring: Ring, actions: Array, stamp: int, draws: Array | None) -> tuple[int, int, float]:
    state = states[0]
    if draws is None and not (is_plain_array(actions, state.B.shape[0]) and is_admissible(actions)):
        return UNFIT, 0, 0.0  # where draws are taken, the set has been checked before: a mistake takes none
    if is_sparse(spanned_blocks(first_lane(state), held_count(state) + 2), ring.shape[0]):  # as `fit(1)` has it
        return RESIZE, 0, 0.0
    count = actions.shape[0]
    scores = state.scores[:count] if count <= ROUNDS_PER_BLOCK else np.empty(count)
    index = decide_and_record(state, ring, actions, stamp, draws, scores)
    if index >= 0:
        for i in range(actions.shape[1]):
            state.last_action[i] = actions[index, i]
    return index, state.rounds, float(scores[index])


@kernel
def decide_one(
    states: StateArray, ring: Ring, actions: Array, stamp: int, draws: Array | None
) -> tuple[int, int, float]:
    """Decide on a set of doubles: return (index, round, score), or `RESIZE` or `UNFIT` for an index."""
    return _decide(states, ring, actions, stamp, draws)


@kernel_holding_gil
def decide_one_holding_gil(
    states: StateArray, ring: Ring, actions: Array, stamp: int, draws: Array | None
) -> tuple[int, int, float]:
    """Decide as `decide_one` does, but refuse large sets as `UNFIT`."""
    if is_large(actions.shape[0], states[0].B.shape[0]):
        return UNFIT, 0, 0.0
    return _decide(states, ring, actions, stamp, draws)


@kernel
def choose_one(states: StateArray, ring: Ring, actions: Array, stamp: int, draws: Array | None) -> tuple[int, float]:
    """Choose from an admissible set as `decide_one` would, and record nothing: (index, score).

    `states` is a copy, which is brought up to the decision; the ring is as it was when this returns.
    """
    state = states[0]
    now = state.rounds + 1 if stamp == UNSTAMPED else stamp
    closing = state.oldest
    while is_closing(state, ring, closing, now):
        closing += 1
    first, norms = state.oldest, np.empty(closing - state.oldest)
    for i in range(norms.shape[0]):
        slot = slot_of(state, ring, first + i)
        norms[i] = ring[slot // ROUNDS_PER_BLOCK].norm[slot % ROUNDS_PER_BLOCK]
    scores = np.empty(actions.shape[0])
    observe_actions(state, actions)
    start_round(state, ring, stamp, draws)
    index = choose(state, ring, actions, draws, scores)
    for i in range(norms.shape[0]):
        slot = slot_of(state, ring, first + i)
        ring[slot // ROUNDS_PER_BLOCK].norm[slot % ROUNDS_PER_BLOCK] = norms[i]
    return index, float(scores[index])


@kernel
def decide_many(
    states: StateArray,
    ring: Ring,
    rows: Array,
    ends: Integers,
    stamps: Integers,
    draws: Array,
    indices: Integers,
    values: Array,
    propensities: Array,
    summaries: Shorts,
) -> None:
    """Decide set after set, as `decide_one` would; the ring has room, and the actions are admissible.

    Set i is the rows from the end of the set before it to ends[i]. Propensities have a sign: see `signed_propensity`.
    `summaries` has a row for each set, or none where nobody asks.
    """
    state, begin = states[0], 0
    for i in range(ends.shape[0]):
        actions, begin = rows[begin : ends[i]], ends[i]
        count = actions.shape[0]
        scores = state.scores[:count] if count <= ROUNDS_PER_BLOCK else np.empty(count)
        indices[i] = decide_and_record(state, ring, actions, stamps[i], draws[i], scores)
        values[i] = scores[indices[i]]
        propensities[i] = signed_propensity(state)
        if summaries.shape[0] > 0:
            latest_summary(state, actions, summaries[i])


@kernel
def record_many(
    states: StateArray, ring: Ring, actions: Array, summaries: Shorts, stamps: Integers, draws: Array
) -> None:
    """Record decisions that were made before, as `decide_and_record` does; the ring has room for them."""
    state = states[0]
    for i in range(actions.shape[0]):
        if not state.frozen:
            observe_summary(state, summaries[i])
        stamp = start_round(state, ring, stamps[i], draws[i])
        action = actions[i]
        if state.frozen:
            action, state.last_frozen = np.zeros(action.shape[0]), state.rounds + 1
        record(state, ring, action, stamp)


@kernel
def next_width(states: StateArray, ring: Ring, stamp: int) -> float:
    """Return the width as of a decision at `stamp`; `states` is brought up to it."""
    state = states[0]
    forget(state, ring, stamp)
    advance_time(state, ring, stamp)
    advance_set(state, ring, stamp)
    return float(width(state, pending_width(state, ring, stamp)))


@kernel
def next_pending_width(states: StateArray, ring: Ring, stamp: int) -> float:
    """Return W as of a decision at `stamp`; where it forgets, `states` is brought up to it."""
    state = states[0]
    forget(state, ring, stamp)
    return float(pending_width(state, ring, stamp))


@kernel
def next_estimate(states: StateArray, ring: Ring, stamp: int) -> None:
    """Fill in θ̂ as of a decision at `stamp`; `states` is brought up to it."""
    state = states[0]
    forget(state, ring, stamp)
    advance_time(state, ring, stamp)
    advance_set(state, ring, stamp)
    estimate(state)
