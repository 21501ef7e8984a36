"""The products that everything else is made of.

The dimension is a constant of the state's type, so loops up to `UNROLLED` are unrolled by the compiler; beyond it the
kernels call BLAS.
"""

import numpy as np

from latecomer.core.compile import kernel
from latecomer.core.state import Array

UNROLLED = 16
"""The largest dimension for plain loops; BLAS wins above it."""

CHUNK = 512
"""Actions a BLAS call works on at once: every call packs the matrix anew, and the product takes memory."""

EPSILON = 2.0**-52
"""What a double can tell from 1: a pivot that is less of its diagonal is rounding, and may have any sign."""

TIE = 1e-10
"""A later action must beat an earlier one by more than this times 1 + |score|: rounding must not decide a tie."""


@kernel
def dot(x: Array, y: Array, dim: int) -> float:
    """⟨x, y⟩ of contiguous vectors."""
    if dim <= UNROLLED:
        total = 0.0
        for i in range(dim):
            total += x[i] * y[i]
        return total
    return float(np.dot(x, y))


@kernel
def multiply(matrix: Array, x: Array, out: Array) -> None:
    """Out = matrix·x for a symmetric matrix, row by row so that the inner loop is a vector one."""
    dim = out.shape[0]
    for i in range(dim):
        out[i] = 0.0
    for j in range(dim):
        x_j = x[j]
        for i in range(dim):
            out[i] += matrix[j, i] * x_j


@kernel
def squared_norms(matrix: Array, actions: Array, out: Array) -> None:
    """out[k] = ‖a_k‖² in the norm of a symmetric matrix."""
    dim = matrix.shape[0]
    if dim <= UNROLLED:
        for k in range(actions.shape[0]):
            total = 0.0
            for i in range(dim):
                below = 0.0  # symmetry: the lower triangle counts twice
                for j in range(i):
                    below += matrix[i, j] * actions[k, j]
                total += (2.0 * below + matrix[i, i] * actions[k, i]) * actions[k, i]
            out[k] = total
    else:
        count = actions.shape[0]
        products = np.empty((min(CHUNK, count), dim))
        for low in range(0, count, CHUNK):
            high = min(low + CHUNK, count)
            np.dot(actions[low:high], matrix, products[: high - low])
            for k in range(low, high):
                out[k] = dot(products[k - low], actions[k], dim)


@kernel
def row_dot(matrix: Array, row: int, x: Array) -> float:
    """⟨row of the matrix, x⟩; indexing a short row costs less than slicing it, which counts references."""
    dim = x.shape[0]
    if dim <= UNROLLED:
        total = 0.0
        for i in range(dim):
            total += matrix[row, i] * x[i]
        return total
    return dot(matrix[row], x, dim)


@kernel
def squared_length(matrix: Array, row: int) -> float:
    """‖row of the matrix‖²."""
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
def first_best(scores: Array) -> int:
    """The lowest index whose score no later one beats by more than a rounding error."""
    best = 0
    for k in range(1, scores.shape[0]):
        if scores[k] > scores[best] + TIE * (1.0 + abs(scores[best])):
            best = k
    return best
