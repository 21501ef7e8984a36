"""A Gram matrix that grows and shrinks: factorised afresh where it is needed, G = UᵀU, O(d³/3).

Weights that move up and down rule rank-one updates of a root out, and a Cholesky factor costs less than they would up
to some dozens of dimensions. Rows of the upper triangle lie side by side, so that inner loops are vector ones.
"""

import math

import numpy as np

from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.linalg.products import EPSILON
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Ring, State


@kernel
def add_outer(state: State, ring: Ring, slot: int, weight: float) -> None:
    """G += weight·A_s A_sᵀ, for the round in that slot; the upper triangle alone."""
    gram, action, dim = state.gram, state.u, state.gram.shape[0]
    for i in range(dim):  # its numbers lie a block's breadth apart: side by side, they are added by vectors
        action[i] = ring[slot // ROUNDS_PER_BLOCK].action[i, slot % ROUNDS_PER_BLOCK]
    for i in range(dim):
        weighted = weight * action[i]
        for j in range(i, dim):
            gram[i, j] += weighted * action[j]


@kernel
def factorise(gram: Array, ridge: float, factor: Array) -> None:
    """U, upper triangular, with UᵀU = G + ridge·I; only the upper triangles are read and written."""
    dim = gram.shape[0]
    for i in range(dim):
        for j in range(i, dim):
            factor[i, j] = gram[i, j]
        factor[i, i] += ridge
        fours = i - i % 4
        for k in range(0, fours, 4):  # four rows at once: the sum is loaded and stored a quarter as often
            a, b, c, d = factor[k, i], factor[k + 1, i], factor[k + 2, i], factor[k + 3, i]
            for j in range(i, dim):
                rest = factor[i, j] - a * factor[k, j] - b * factor[k + 1, j]
                factor[i, j] = rest - c * factor[k + 2, j] - d * factor[k + 3, j]
        for k in range(fours, i):
            above = factor[k, i]
            for j in range(i, dim):
                factor[i, j] -= above * factor[k, j]
        factor[i, i] = math.sqrt(max(factor[i, i], EPSILON * (gram[i, i] + ridge)))
        scale = 1.0 / factor[i, i]
        for j in range(i + 1, dim):
            factor[i, j] *= scale


@kernel
def solve_upper_transposed(factor: Array, x: Array) -> None:
    """X = U⁻ᵀx, in place."""
    dim = x.shape[0]
    for k in range(dim):
        x[k] /= factor[k, k]
        for j in range(k + 1, dim):
            x[j] -= factor[k, j] * x[k]


@kernel
def solve_upper(factor: Array, x: Array) -> None:
    """X = U⁻¹x, in place."""
    dim = x.shape[0]
    for step in range(dim):
        k = dim - 1 - step
        rest = x[k]
        for j in range(k + 1, dim):
            rest -= factor[k, j] * x[j]
        x[k] = rest / factor[k, k]


@kernel_noinline
def gram_solve(state: State, ridge: float) -> None:
    """state.theta_hat becomes (G + ridge·I)⁻¹ times what it was, and state.factor U."""
    factorise(state.gram, ridge, state.factor)
    solve_upper_transposed(state.factor, state.theta_hat)
    solve_upper(state.factor, state.theta_hat)


@kernel
def gram_estimate(state: State) -> None:
    """state.theta_hat = G⁻¹B, and state.factor = U."""
    for i in range(state.B.shape[0]):
        state.theta_hat[i] = state.B[i]
    gram_solve(state, 0.0)


@kernel_noinline
def gram_trace(state: State) -> float:
    """The trace of (G + ridge·I)⁻¹ = ‖U⁻ᵀ‖²; after `gram_solve`."""
    dim, column, trace = state.B.shape[0], state.u, 0.0
    for k in range(dim):
        for i in range(dim):
            column[i] = 1.0 if i == k else 0.0
        solve_upper_transposed(state.factor, column)
        for i in range(dim):
            trace += column[i] * column[i]
    return trace


@kernel
def gram_draw(state: State, scale: float, normals: Array) -> None:
    """state.sample = θ̂ + scale·U⁻¹z ~ N(θ̂, scale²·G⁻¹); after `gram_solve`."""
    sample = state.sample
    for i in range(sample.shape[0]):
        sample[i] = normals[i]
    solve_upper(state.factor, sample)
    for i in range(sample.shape[0]):
        sample[i] = state.theta_hat[i] + scale * sample[i]


@kernel_noinline
def gram_norms(state: State, actions: Array, out: Array) -> None:
    """out[k] = ‖a_k‖² in G⁻¹ = ‖U⁻ᵀa_k‖², all actions side by side; after `gram_solve`."""
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
