"""Cholesky factors of many dimensions: factorised by pairs of rows, and kept up to date by updates of rank four.

U is upper triangular and UᵀU = M, as in `cholesky`. Beyond a few dozen dimensions a factor no longer fits into the
nearest cache, so every row that is loaded serves several others at once.
"""

import math

import numpy as np

from latecomer.core.jit import kernel
from latecomer.core.linalg.products import EPSILON, dot
from latecomer.core.state import Array

RANK = 4
"""Rank-one terms that one pass over a matrix adds."""

LEAST_SHARE = 1e-4
"""A downdate that leaves less than this share of a squared pivot cancels too many digits to be used."""


@kernel
def add_outer_products(matrix: Array, rows: Array, weights: Array) -> None:
    """Matrix += Σ weight·rrᵀ over `RANK` rows r; the upper triangle alone."""
    dim = matrix.shape[0]
    for i in range(dim):
        a, b = weights[0] * rows[0, i], weights[1] * rows[1, i]
        c, d = weights[2] * rows[2, i], weights[3] * rows[3, i]
        for j in range(i, dim):
            matrix[i, j] += (a * rows[0, j] + b * rows[1, j]) + (c * rows[2, j] + d * rows[3, j])


@kernel
def update_factor_by_rows(factor: Array, rows: Array) -> None:
    """Make U the factor of UᵀU + Σ rrᵀ over `RANK` rows r, which are overwritten; backward stable, O(d²).

    One Householder reflection for each row of U makes the entries below its pivot vanish.
    """
    dim = factor.shape[0]
    for k in range(dim):
        pivot, a, b, c, d = factor[k, k], rows[0, k], rows[1, k], rows[2, k], rows[3, k]
        length = math.sqrt(pivot * pivot + ((a * a + b * b) + (c * c + d * d)))
        head = pivot + length
        scale = head / length
        a, b, c, d = a / head, b / head, c / head, d / head
        factor[k, k] = length
        for j in range(k + 1, dim):
            upper = factor[k, j]
            part = scale * (upper + ((a * rows[0, j] + b * rows[1, j]) + (c * rows[2, j] + d * rows[3, j])))
            factor[k, j] = part - upper
            rows[0, j] -= a * part
            rows[1, j] -= b * part
            rows[2, j] -= c * part
            rows[3, j] -= d * part


@kernel
def downdate_factor(factor: Array, rows: Array, row: int) -> bool:
    """Make U the factor of UᵀU − rrᵀ, r a row, which is overwritten, by hyperbolic rotations; O(d²).

    Return whether it could be done accurately; if not, U is of no use any more.
    """
    dim = factor.shape[0]
    for k in range(dim):
        sine = rows[row, k] / factor[k, k]
        share = (1.0 - sine) * (1.0 + sine)
        if not share >= LEAST_SHARE:
            return False
        cosine = math.sqrt(share)
        scale = 1.0 / cosine
        factor[k, k] *= cosine
        for j in range(k + 1, dim):
            upper = (factor[k, j] - sine * rows[row, j]) * scale
            factor[k, j] = upper
            rows[row, j] = cosine * rows[row, j] - sine * upper
    return True


@kernel
def _subtract_rows(target: Array, i: int, factor: Array, source: Array, count: int, upper: bool) -> None:
    """Subtract Σ factor[k, i]·source[k], k < count, from row i of the target, and likewise for row i + 1.

    Columns from i on where `upper`; else those up to k, for a source that is lower triangular.
    """
    dim = factor.shape[0]
    fours = count - count % 4
    for k in range(0, fours, 4):
        a, b, c, d = factor[k, i], factor[k + 1, i], factor[k + 2, i], factor[k + 3, i]
        e, f, g, h = factor[k, i + 1], factor[k + 1, i + 1], factor[k + 2, i + 1], factor[k + 3, i + 1]
        low, high = (i, dim) if upper else (0, k + 4)
        for j in range(low, high):
            p, q, r, s = source[k, j], source[k + 1, j], source[k + 2, j], source[k + 3, j]
            target[i, j] -= (a * p + b * q) + (c * r + d * s)
            target[i + 1, j] -= (e * p + f * q) + (g * r + h * s)
    for k in range(fours, count):
        a, e = factor[k, i], factor[k, i + 1]
        low, high = (i, dim) if upper else (0, k + 1)
        for j in range(low, high):
            p = source[k, j]
            target[i, j] -= a * p
            target[i + 1, j] -= e * p


@kernel
def _finish_row(factor: Array, i: int, diagonal: float) -> None:
    """Divide a row by its pivot's root; the pivot may not fall below the rounding error of the diagonal entry."""
    factor[i, i] = math.sqrt(max(factor[i, i], EPSILON * diagonal))
    scale = 1.0 / factor[i, i]
    for j in range(i + 1, factor.shape[0]):
        factor[i, j] *= scale


@kernel
def factorise_by_pairs(matrix: Array, shift: float, factor: Array) -> None:
    """Fill `factor` with U, UᵀU = matrix + shift·I; read and write the upper triangles alone. O(d³/3)."""
    dim = matrix.shape[0]
    pairs = dim - dim % 2
    for i in range(0, pairs, 2):
        factor[i + 1, i] = 0.0
        for j in range(i, dim):
            factor[i, j] = matrix[i, j]
        for j in range(i + 1, dim):
            factor[i + 1, j] = matrix[i + 1, j]
        factor[i, i] += shift
        factor[i + 1, i + 1] += shift
        _subtract_rows(factor, i, factor, factor, i, True)
        _finish_row(factor, i, matrix[i, i] + shift)
        above = factor[i, i + 1]
        for j in range(i + 1, dim):
            factor[i + 1, j] -= above * factor[i, j]
        _finish_row(factor, i + 1, matrix[i + 1, i + 1] + shift)
        factor[i + 1, i] = 0.0
    if pairs < dim:
        last = matrix[pairs, pairs] + shift
        factor[pairs, pairs] = last
        for k in range(pairs):
            factor[pairs, pairs] -= factor[k, pairs] * factor[k, pairs]
        _finish_row(factor, pairs, last)


@kernel
def inverse_square_norm(factor: Array) -> float:
    """Return ‖U⁻¹‖² = tr (UᵀU)⁻¹, from U⁻ᵀ by forward substitution. O(d³/6)."""
    dim = factor.shape[0]
    inverse = np.zeros((dim, dim))
    total = 0.0
    pairs = dim - dim % 2
    for i in range(0, dim, 2):
        inverse[i, i] = 1.0
        if i < pairs:
            _subtract_rows(inverse, i, factor, inverse, i, False)
        else:
            for k in range(i):
                for j in range(k + 1):
                    inverse[i, j] -= factor[k, i] * inverse[k, j]
        for j in range(i + 1):
            inverse[i, j] /= factor[i, i]
            total += inverse[i, j] * inverse[i, j]
        if i < pairs:
            inverse[i + 1, i + 1] = 1.0
            for j in range(i + 1):
                inverse[i + 1, j] -= factor[i, i + 1] * inverse[i, j]
            for j in range(i + 2):
                inverse[i + 1, j] /= factor[i + 1, i + 1]
                total += inverse[i + 1, j] * inverse[i + 1, j]
    return total


@kernel
def solve_upper_by_rows(factor: Array, x: Array) -> None:
    """Solve Uy = x for y, in place, each row a product by BLAS."""
    dim = x.shape[0]
    for step in range(dim):
        k = dim - 1 - step
        x[k] = (x[k] - dot(factor[k, k + 1 :], x[k + 1 :], step)) / factor[k, k]
