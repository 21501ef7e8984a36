"""The compiled side of a policy: generic kernels, for whichever algorithm they find in a state's type."""

import numpy as np

from latecomer.core.action_summary import Shorts
from latecomer.core.jit import kernel, kernel_holding_gil, kernel_ir_inlined
from latecomer.core.linalg.products import squared_length
from latecomer.core.ridge import is_check_due, rank_one_update, refresh_inverse_if_drifted
from latecomer.core.ring import append_round, expire, held_count, is_full, is_sparse, spanned_blocks
from latecomer.core.state import ROUNDS_PER_BLOCK, UNSTAMPED, Array, Integers, Ring, State, StateArray
from latecomer.core.width import renew_norms, shrink_norms
from latecomer.policies.base.algorithm import choose, estimate, hear, pending, prepare, recall, settle, term, width

NORM_LIMIT = 1.0 + 1e-6
"""Norms up to 1 are what the theory wants; the rest is room for rounding, single precision included."""

RESIZE, UNFIT = -1, -2

LARGE = 100_000
"""K·d² from which a BLAS would start threads of its own, and others should not wait."""


@kernel
def is_admissible(actions: Array) -> bool:
    """Whether every action is finite and of norm at most 1: a NaN fails every comparison."""
    for k in range(actions.shape[0]):  # noqa: SIM110 - Numba compiles no generator expressions
        if not squared_length(actions, k) <= NORM_LIMIT * NORM_LIMIT:
            return False
    return True


@kernel
def is_plain_array(actions: Array, dim: int) -> bool:
    """Whether it is what compiled code takes for granted: K > 0 rows of d doubles, aligned, one after the other.

    An array's type in compiled code does not say so, but its strides do.
    """
    count, columns = actions.shape
    by_row, by_column = actions.strides
    in_a_row = (by_column == 8 or dim == 1) and (by_row == 8 * dim or count == 1)
    return count > 0 and columns == dim and in_a_row and actions.ctypes.data % 8 == 0


@kernel_holding_gil
def is_admissible_holding_gil(actions: Array, dim: int) -> bool:
    """Whether a set is plain and admissible."""
    return is_plain_array(actions, dim) and is_admissible(actions)


@kernel
def is_large(count: int, dim: int) -> bool:
    """Whether a decision takes long enough that others should not wait."""
    return count * dim * dim >= LARGE


@kernel_ir_inlined
def record(state: State, ring: Ring, action: Array, stamp: int) -> None:
    """A decision moves V and the window."""
    c = 0.0 if state.deferred else rank_one_update(state, action)
    norm = term(state, c)  # buffered: frozen
    if state.exact:
        shrink_norms(state, ring, c)
        norm = c / (1.0 + c)  # ‖A_s‖² in V_{s+1}⁻¹
    append_round(state, ring, action, stamp, norm)
    if is_check_due(state, c) and refresh_inverse_if_drifted(state) and state.exact:
        renew_norms(state, ring)


@kernel_ir_inlined
def decide_and_record(state: State, ring: Ring, actions: Array, stamp: int, draws: Array | None, scores: Array) -> int:
    """One decision: the index of the action that was chosen and recorded, or `RESIZE` where there is no room."""
    if stamp == UNSTAMPED:
        stamp = state.rounds + 1
    if is_full(state, ring):
        return RESIZE
    hear(state, actions)
    settle(state, ring, stamp)
    prepare(state, ring, draws)
    expire(state, ring, stamp)
    index = choose(state, ring, actions, draws, scores)
    record(state, ring, actions[index], stamp)
    return index


@kernel_ir_inlined
def _step(cell: StateArray, ring: Ring, actions: Array, stamp: int, draws: Array | None) -> tuple[int, int, float]:
    state = cell[0]
    if is_sparse(spanned_blocks(state.head, held_count(state) + 2), ring.shape[0]):  # as `Memory.fit(1)` measures it
        return RESIZE, 0, 0.0
    count = actions.shape[0]
    scores = state.scores[:count] if count <= ROUNDS_PER_BLOCK else np.empty(count)
    index = decide_and_record(state, ring, actions, stamp, draws, scores)
    if index >= 0:
        for i in range(actions.shape[1]):
            state.played[i] = actions[index, i]
    return index, state.rounds, scores[index]


@kernel
def decide_one(cell: StateArray, ring: Ring, actions: Array, stamp: int, draws: Array | None) -> tuple[int, int, float]:
    """One decision on an admissible set: (index, round, score), the index negative where there is no room."""
    return _step(cell, ring, actions, stamp, draws)


@kernel_holding_gil
def decide_one_holding_gil(
    cell: StateArray, ring: Ring, actions: Array, stamp: int, draws: Array | None
) -> tuple[int, int, float]:
    """The same on any set of doubles, and `UNFIT` where it is not plain, not admissible, or large."""
    dim = cell[0].B.shape[0]
    if not is_plain_array(actions, dim) or is_large(actions.shape[0], dim) or not is_admissible(actions):
        return UNFIT, 0, 0.0
    return _step(cell, ring, actions, stamp, draws)


@kernel
def decide_many(
    cell: StateArray, ring: Ring, sets: Array, stamps: Integers, draws: Array, indices: Integers, values: Array
) -> None:
    """Decision after decision, each as a step would make it; the ring has room, and the actions are admissible."""
    scores = np.empty(sets.shape[1])
    for i in range(sets.shape[0]):
        indices[i] = decide_and_record(cell[0], ring, sets[i], stamps[i], draws[i], scores)
        values[i] = scores[indices[i]]


@kernel
def record_many(cell: StateArray, ring: Ring, actions: Array, offers: Shorts, stamps: Integers, draws: Array) -> None:
    """Record decisions that were made before, as `decide_and_record` does; the ring has room for them."""
    state = cell[0]
    for i in range(actions.shape[0]):
        stamp = state.rounds + 1 if stamps[i] == UNSTAMPED else stamps[i]
        recall(state, offers[i])
        settle(state, ring, stamp)
        prepare(state, ring, draws[i])
        expire(state, ring, stamp)
        record(state, ring, actions[i], stamp)


@kernel
def next_width(cell: StateArray, ring: Ring, stamp: int) -> float:
    """The width as of a decision at `stamp`; what settles by then does so in `cell`."""
    state = cell[0]
    settle(state, ring, stamp)
    return float(width(state, pending(state, ring, stamp)))


@kernel
def next_pending_width(cell: StateArray, ring: Ring, stamp: int) -> float:
    """W as of a decision at `stamp`."""
    return float(pending(cell[0], ring, stamp))


@kernel
def next_estimate(cell: StateArray, ring: Ring, stamp: int) -> None:
    """Fill in θ̂ as of a decision at `stamp`; what settles by then does so in `cell`."""
    settle(cell[0], ring, stamp)
    estimate(cell[0])
