"""Products of vectors and matrices, and the choice of the largest score.

The dimension is a constant of the state's kind, so loops up to `UNROLLED` are unrolled by the compiler. Longer products
are summed in `LANES` sums side by side, so that one addition need not wait for the other.
"""

import numpy as np

from latecomer.core.jit import kernel, vectorised
from latecomer.core.state import Array

UNROLLED = 16
"""The largest dimension whose products are summed one by one."""

LANES = 8
"""Sums side by side of a longer product."""

EPSILON = 2.0**-52
"""The rounding error of a double, relative: a smaller share of a diagonal entry may have any sign."""

TIE = 1e-10
"""A later action must beat an earlier one by more than this times 1 + |score|: rounding must not decide a tie."""


def _long_dot(x: Array, y: Array) -> float:
    products = x * y
    whole = len(products) - len(products) % LANES
    s = np.add.reduce(products[:whole].reshape(-1, LANES), axis=0)
    total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
    for product in products[whole:]:
        total += product
    return float(total)


@vectorised(_long_dot)
def long_dot(x: Array, y: Array) -> float:
    """Return ⟨x, y⟩ of vectors longer than `LANES`."""
    dim = y.shape[0]
    whole = dim - dim % 8
    s_0 = s_1 = s_2 = s_3 = s_4 = s_5 = s_6 = s_7 = 0.0
    for i in range(0, whole, 8):
        s_0 += x[i] * y[i]
        s_1 += x[i + 1] * y[i + 1]
        s_2 += x[i + 2] * y[i + 2]
        s_3 += x[i + 3] * y[i + 3]
        s_4 += x[i + 4] * y[i + 4]
        s_5 += x[i + 5] * y[i + 5]
        s_6 += x[i + 6] * y[i + 6]
        s_7 += x[i + 7] * y[i + 7]
    total = ((s_0 + s_1) + (s_2 + s_3)) + ((s_4 + s_5) + (s_6 + s_7))
    for i in range(whole, dim):
        total += x[i] * y[i]
    return total


@kernel
def dot(x: Array, y: Array, dim: int) -> float:
    """Return ⟨x, y⟩ of contiguous vectors."""
    if dim <= UNROLLED:
        total = 0.0
        for i in range(dim):
            total += x[i] * y[i]
        return total
    return long_dot(x, y)


def _multiply(matrix: Array, x: Array, out: Array) -> None:
    out[:] = 0.0
    for j in range(len(out)):
        out += matrix[j] * x[j]


@vectorised(_multiply)
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
    return long_dot(matrix[row], x)


@kernel
def square_of_row(matrix: Array, row: int) -> float:
    """Return ‖row of the matrix‖²."""
    dim = matrix.shape[1]
    if dim <= UNROLLED:
        total = 0.0
        for i in range(dim):
            total += matrix[row, i] * matrix[row, i]
        return total
    return long_dot(matrix[row], matrix[row])


@kernel
def inner_products(actions: Array, x: Array, out: Array) -> None:
    """out[k] = ⟨a_k, x⟩."""
    for k in range(actions.shape[0]):
        out[k] = row_dot(actions, k, x)


def _has_lengths_below(matrix: Array, limit: float) -> bool:
    total = np.zeros(len(matrix))
    for i in range(matrix.shape[1]):
        total += matrix[:, i] * matrix[:, i]
    return bool((total <= limit).all())


@vectorised(_has_lengths_below)
def has_lengths_below(matrix: Array, limit: float) -> bool:
    """Tell whether ‖row‖² ≤ limit for every row: a NaN fails every comparison."""
    count, fits = matrix.shape[0], True
    fours = count - count % 4
    for k in range(0, fours, 4):  # four rows at once: one addition need not wait for the other
        a = b = c = d = 0.0
        for i in range(matrix.shape[1]):
            a += matrix[k, i] * matrix[k, i]
            b += matrix[k + 1, i] * matrix[k + 1, i]
            c += matrix[k + 2, i] * matrix[k + 2, i]
            d += matrix[k + 3, i] * matrix[k + 3, i]
        fits = fits and a <= limit and b <= limit and c <= limit and d <= limit
    for k in range(fours, count):
        a = 0.0
        for i in range(matrix.shape[1]):
            a += matrix[k, i] * matrix[k, i]
        fits = fits and a <= limit
    return fits


@kernel
def argmax_first(scores: Array) -> int:
    """Return the lowest index whose score no later one exceeds by more than a rounding error."""
    best = 0
    for k in range(1, scores.shape[0]):
        if scores[k] > scores[best] + TIE * (1.0 + abs(scores[best])):
            best = k
    return best
