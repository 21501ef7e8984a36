"""Products of vectors and matrices, and the choice of the largest score.

The dimension is a constant of the state's type, so loops up to `UNROLLED` are unrolled by the compiler; beyond it the
kernels call BLAS.
"""

import numpy as np

from latecomer.core.jit import kernel
from latecomer.core.state import Array

UNROLLED = 16
"""The largest dimension for plain loops; BLAS wins above it."""

EPSILON = 2.0**-52
"""The rounding error of a double, relative: a smaller share of a diagonal entry may have any sign."""

TIE = 1e-10
"""A later action must beat an earlier one by more than this times 1 + |score|: rounding must not decide a tie."""


@kernel
def dot(x: Array, y: Array, dim: int) -> float:
    """Return ⟨x, y⟩ of contiguous vectors."""
    if dim <= UNROLLED:
        total = 0.0
        for i in range(dim):
            total += x[i] * y[i]
        return total
    return float(np.dot(x, y))


@kernel
def multiply(matrix: Array, x: Array, out: Array) -> None:
    """Fill `out` with matrix·x for a symmetric matrix, row by row so that the inner loop is a vector one."""
    dim = out.shape[0]
    for i in range(dim):
        out[i] = 0.0
    for j in range(dim):
        x_j = x[j]
        for i in range(dim):
            out[i] += matrix[j, i] * x_j


@kernel
def row_dot(matrix: Array, row: int, x: Array) -> float:
    """Return ⟨row of the matrix, x⟩; indexing a short row costs less than slicing it, which counts references."""
    dim = x.shape[0]
    if dim <= UNROLLED:
        total = 0.0
        for i in range(dim):
            total += matrix[row, i] * x[i]
        return total
    return dot(matrix[row], x, dim)


@kernel
def squared_length(matrix: Array, row: int) -> float:
    """Return ‖row of the matrix‖²."""
    dim = matrix.shape[1]
    if dim <= UNROLLED:
        total = 0.0
        for i in range(dim):
            total += matrix[row, i] * matrix[row, i]
        return total
    return dot(matrix[row], matrix[row], dim)


@kernel
def inner_products(actions: Array, x: Array, out: Array) -> None:
    """out[k] = ⟨a_k, x⟩."""
    for k in range(actions.shape[0]):
        out[k] = row_dot(actions, k, x)


@kernel
def argmax_first(scores: Array) -> int:
    """Return the lowest index whose score no later one exceeds by more than a rounding error."""
    best = 0
    for k in range(1, scores.shape[0]):
        if scores[k] > scores[best] + TIE * (1.0 + abs(scores[best])):
            best = k
    return best
