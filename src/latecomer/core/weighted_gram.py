"""A Gram matrix that grows and shrinks, and the Cholesky factor of G + shift·I = UᵀU.

Up to `DIRECT` dimensions U is factorised afresh where it is needed, O(d³/3): there it costs less than anything else.
Beyond, U follows G. Terms are collected in batches of four, and one pass over U adds them, O(d²); terms that are taken
away cost a pass each. U is factorised afresh where there are more terms at once than that would cost, where taking one
away would cancel too many digits, where the shift changes, and after `UPDATES` terms for each dimension, so that
rounding errors do not add up.
"""

import math

import numpy as np

from latecomer.core.gram_factor import (
    RANK,
    add_batch,
    downdate_factor,
    factorise_by_pairs,
    inverse_square_norm,
    update_factor_by_batch,
)
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.linalg.cholesky import factorise, solve_upper, solve_upper_transposed, whiten
from latecomer.core.state import (
    ROUNDS_PER_BLOCK,
    Array,
    ExtraFields,
    Field,
    FieldKind,
    Ring,
    State,
    number_field,
    scratch_field,
)

DIRECT = 32
"""The largest dimension in which U is factorised afresh for every decision."""

UPDATES = 16
"""Terms for each dimension after which U is factorised afresh: that costs a sixteenth of what the terms do, or less."""


def gram_fields(dim: int, ridge: float) -> ExtraFields:
    """Return the fields of G and U."""
    if dim <= DIRECT:
        return {
            "gram": Field(np.eye(dim) * ridge),  # G, its upper triangle
            "factor": scratch_field(dim, dim),  # U with UᵀU = G + shift·I
        }
    return {
        "gram": Field(np.eye(dim) * ridge),
        "factor": Field(np.eye(dim) * np.sqrt(ridge)),
        "gram_shift": number_field(),
        "factor_updates": number_field(np.int64),  # terms since U was last factorised
        "factorisations": number_field(np.int64),
        "batch": scratch_field(RANK, dim),  # the actions of the terms that are being collected,
        "batch_weights": scratch_field(RANK),  # their weights
        "batch_size": Field(np.zeros((), np.int64), FieldKind.SCRATCH),  # and how many there are
    }


@kernel
def add_outer(state: State, ring: Ring, slot: int, weight: float) -> None:
    """G += weight·A_s A_sᵀ, for the round in that slot; the upper triangle alone."""
    gram, action, dim = state.gram, state.u, state.gram.shape[0]
    for i in range(dim):  # copied side by side, its numbers can be added by vectors
        action[i] = ring[slot // ROUNDS_PER_BLOCK].action[i, slot % ROUNDS_PER_BLOCK]
    for i in range(dim):
        weighted = weight * action[i]
        for j in range(i, dim):
            gram[i, j] += weighted * action[j]


@kernel_noinline
def apply_batch(state: State, follow: bool) -> bool:
    """Add the batch to G and, if U is to follow, to U; return whether U has followed."""
    batch, weights, size, dim = state.batch, state.batch_weights, state.batch_size, state.gram.shape[0]
    for row in range(size, RANK):
        weights[row] = 0.0
        for i in range(dim):
            batch[row, i] = 0.0
    add_batch(state)
    state.batch_size = 0
    if not follow or size == 0:
        return follow
    for row in range(size):
        root = math.sqrt(abs(weights[row]))
        for i in range(dim):
            batch[row, i] *= root
    if weights[0] > 0.0:
        update_factor_by_batch(state)
        return True
    for row in range(size):
        for i in range(dim):
            state.u[i] = batch[row, i]
        if not downdate_factor(state):
            return False
    return True


@kernel
def collect_outer(state: State, ring: Ring, slot: int, weight: float, follow: bool) -> bool:
    """Collect the term weight·A_s A_sᵀ of G, and apply a full batch; return whether U follows.

    Terms of one batch have the same sign.
    """
    row = state.batch_size
    for i in range(state.gram.shape[0]):
        state.batch[row, i] = ring[slot // ROUNDS_PER_BLOCK].action[i, slot % ROUNDS_PER_BLOCK]
    state.batch_weights[row] = weight
    state.batch_size = row + 1
    return apply_batch(state, follow) if row + 1 == RANK else follow


@kernel_noinline
def factorise_gram(state: State) -> None:
    """Compute U afresh; beyond `DIRECT` dimensions."""
    factorise_by_pairs(state)
    state.factor_updates = 0
    state.factorisations += 1


@kernel
def shift_gram(state: State, shift: float) -> None:
    """Make `shift` the multiple of I that U has more than G."""
    if state.gram.shape[0] > DIRECT and shift != state.gram_shift:
        state.gram_shift = shift
        factorise_gram(state)


@kernel_noinline
def gram_half_solve(state: State, shift: float) -> None:
    """Multiply state.theta_hat by U⁻ᵀ, UᵀU = G + shift·I, and leave U in state.factor; the shift is `shift_gram`'s."""
    if state.gram.shape[0] <= DIRECT:
        factorise(state.gram, shift, 0.0, 1.0, state.factor)
    solve_upper_transposed(state.factor, state.theta_hat)


@kernel
def gram_solve(state: State, shift: float) -> None:
    """Multiply state.theta_hat by (G + shift·I)⁻¹, and leave U in state.factor."""
    gram_half_solve(state, shift)
    solve_upper(state.factor, state.theta_hat)


@kernel
def gram_estimate(state: State) -> None:
    """Fill state.theta_hat with G⁻¹B, and state.factor with U."""
    for i in range(state.B.shape[0]):
        state.theta_hat[i] = state.B[i]
    gram_solve(state, 0.0)


@kernel_noinline
def gram_trace(state: State) -> float:
    """Return the trace of (G + shift·I)⁻¹ = ‖U⁻ᵀ‖²; after `gram_solve`."""
    if state.gram.shape[0] > DIRECT:
        return inverse_square_norm(state)
    dim, column, trace = state.B.shape[0], state.u, 0.0
    for k in range(dim):
        for i in range(dim):
            column[i] = 1.0 if i == k else 0.0
        solve_upper_transposed(state.factor, column)
        for i in range(dim):
            trace += column[i] * column[i]
    return trace


@kernel
def sample_from_gram(state: State, scale: float, normals: Array) -> None:
    """Fill state.sample with U⁻¹(y + scale·z) ~ N(U⁻¹y, scale²·(UᵀU)⁻¹), y = state.theta_hat; after `gram_half_solve`.

    One solve is for the mean and for what is drawn.
    """
    for i in range(state.sample.shape[0]):
        state.sample[i] = state.theta_hat[i] + scale * normals[i]
    solve_upper(state.factor, state.sample)


@kernel_noinline
def gram_norms(state: State, actions: Array, out: Array) -> None:
    """out[k] = ‖a_k‖² in G⁻¹ = ‖U⁻ᵀa_k‖², all actions at once; after `gram_solve`."""
    dim, count = state.B.shape[0], actions.shape[0]
    halves = np.empty((dim, count))
    for i in range(dim):
        for k in range(count):
            halves[i, k] = actions[k, i]
    whiten(state.factor, halves)
    for k in range(count):
        out[k] = 0.0
    for i in range(dim):
        for k in range(count):
            out[k] += halves[i, k] * halves[i, k]
