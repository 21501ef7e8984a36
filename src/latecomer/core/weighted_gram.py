"""A Gram matrix that grows and shrinks: factorised afresh where it is needed, G = UᵀU, O(d³/3).

Weights that move up and down rule out rank-one updates of a factor, and up to some dozens of dimensions a new Cholesky
factor costs less than they would.
"""

import numpy as np

from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.linalg.cholesky import factorise, solve_upper, solve_upper_transposed
from latecomer.core.sampling import sample_gaussian
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Ring, State


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
def gram_solve(state: State, ridge: float) -> None:
    """Multiply state.theta_hat by (G + ridge·I)⁻¹, and leave U in state.factor."""
    factorise(state.gram, ridge, 0.0, 1.0, state.factor)
    solve_upper_transposed(state.factor, state.theta_hat)
    solve_upper(state.factor, state.theta_hat)


@kernel
def gram_estimate(state: State) -> None:
    """Fill state.theta_hat with G⁻¹B, and state.factor with U."""
    for i in range(state.B.shape[0]):
        state.theta_hat[i] = state.B[i]
    gram_solve(state, 0.0)


@kernel_noinline
def gram_trace(state: State) -> float:
    """Return the trace of (G + ridge·I)⁻¹ = ‖U⁻ᵀ‖²; after `gram_solve`."""
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
    """Fill state.sample with θ̂ + scale·U⁻¹z ~ N(θ̂, scale²·G⁻¹); after `gram_solve`."""
    sample_gaussian(state.factor, state.theta_hat, scale, normals, state.sample)


@kernel_noinline
def gram_norms(state: State, actions: Array, out: Array) -> None:
    """out[k] = ‖a_k‖² in G⁻¹ = ‖U⁻ᵀa_k‖², all actions at once; after `gram_solve`."""
    dim, count = state.B.shape[0], actions.shape[0]
    halves = np.empty((dim, count))
    for i in range(dim):
        for k in range(count):
            halves[i, k] = actions[k, i]
    for k in range(count):
        out[k] = 0.0
    for i in range(dim):
        scale = 1.0 / state.factor[i, i]
        for k in range(count):
            halves[i, k] *= scale
            out[k] += halves[i, k] * halves[i, k]
        for j in range(i + 1, dim):
            entry = state.factor[i, j]
            for k in range(count):
                halves[j, k] -= entry * halves[i, k]
