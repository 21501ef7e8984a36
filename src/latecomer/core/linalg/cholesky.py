"""Cholesky factors: U upper triangular with UᵀU = M, by factorisation or by rank-one updates, and solves with U.

Rows of the upper triangle lie side by side in memory, so that inner loops are vector ones.
"""

import math

from latecomer.core.jit import kernel
from latecomer.core.linalg.products import EPSILON
from latecomer.core.state import Array


@kernel
def factorise(matrix: Array, shift: float, least: float, terms: float, factor: Array) -> None:
    """Fill `factor` with U, UᵀU = matrix + shift·I; read and write the upper triangles alone.

    No pivot may fall below `least`, nor below the rounding error of a diagonal entry that is a sum of `terms` terms.
    """
    dim = matrix.shape[0]
    for i in range(dim):
        for j in range(i, dim):
            factor[i, j] = matrix[i, j]
        factor[i, i] += shift
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
        rounding = terms * EPSILON * (matrix[i, i] + shift)
        factor[i, i] = math.sqrt(max(factor[i, i], least, rounding))
        scale = 1.0 / factor[i, i]
        for j in range(i + 1, dim):
            factor[i, j] *= scale


@kernel
def update_factor(factor: Array, x: Array, rest: Array) -> None:
    """Make U the factor of UᵀU + xxᵀ, by Givens rotations; `rest` is working memory. Backward stable, O(d²)."""
    dim = factor.shape[0]
    for i in range(dim):
        rest[i] = x[i]
    for k in range(dim):
        if rest[k] == 0.0:
            continue
        diagonal = math.hypot(factor[k, k], rest[k])
        cosine = factor[k, k] / diagonal
        sine = rest[k] / diagonal
        factor[k, k] = diagonal
        for j in range(k + 1, dim):
            upper = factor[k, j]
            factor[k, j] = cosine * upper + sine * rest[j]
            rest[j] = cosine * rest[j] - sine * upper


@kernel
def solve_upper_transposed(factor: Array, x: Array) -> None:
    """Solve Uᵀy = x for y, in place."""
    dim = x.shape[0]
    for k in range(dim):
        x[k] /= factor[k, k]
        for j in range(k + 1, dim):
            x[j] -= factor[k, j] * x[k]


@kernel
def solve_upper(factor: Array, x: Array) -> None:
    """Solve Uy = x for y, in place."""
    dim = x.shape[0]
    for step in range(dim):
        k = dim - 1 - step
        rest = x[k]
        for j in range(k + 1, dim):
            rest -= factor[k, j] * x[j]
        x[k] = rest / factor[k, k]
