"""Cholesky factors: U upper triangular with UᵀU = M, by factorisation or by rank-one updates, and solves with U.

Rows of the upper triangle lie side by side in memory, so that inner loops are vector ones.
"""

import math

import numpy as np

from latecomer.core.jit import vectorised
from latecomer.core.linalg.products import EPSILON
from latecomer.core.state import Array


def _factorise(matrix: Array, shift: float, least: float, terms: float, factor: Array) -> None:
    for i in range(len(matrix)):
        row = matrix[i, i:].copy()
        row[0] += shift
        fours = i - i % 4
        for k in range(0, fours, 4):
            a, b, c, d = factor[k : k + 4, i].tolist()
            rest = row - a * factor[k, i:] - b * factor[k + 1, i:]
            row = rest - c * factor[k + 2, i:] - d * factor[k + 3, i:]
        for k in range(fours, i):
            row -= factor[k, i] * factor[k, i:]
        rounding = terms * EPSILON * (matrix[i, i] + shift)
        row[0] = math.sqrt(max(row[0], least, rounding))
        row[1:] *= 1.0 / row[0]
        factor[i, i:] = row


@vectorised(_factorise)
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


def _update_factor(factor: Array, x: Array, rest: Array) -> None:
    rest[:] = x
    for k in range(len(factor)):
        if rest[k] == 0.0:
            continue
        diagonal = math.sqrt(factor[k, k] * factor[k, k] + rest[k] * rest[k])
        cosine, sine = factor[k, k] / diagonal, rest[k] / diagonal
        factor[k, k] = diagonal
        upper, below = factor[k, k + 1 :].copy(), rest[k + 1 :]
        factor[k, k + 1 :] = cosine * upper + sine * below
        rest[k + 1 :] = cosine * below - sine * upper


@vectorised(_update_factor)
def update_factor(factor: Array, x: Array, rest: Array) -> None:
    """Make U the factor of UᵀU + xxᵀ, by Givens rotations; `rest` is working memory. Backward stable, O(d²)."""
    dim = factor.shape[0]
    for i in range(dim):
        rest[i] = x[i]
    for k in range(dim):
        if rest[k] == 0.0:
            continue
        diagonal = math.sqrt(factor[k, k] * factor[k, k] + rest[k] * rest[k])
        cosine = factor[k, k] / diagonal
        sine = rest[k] / diagonal
        factor[k, k] = diagonal
        for j in range(k + 1, dim):
            upper = factor[k, j]
            factor[k, j] = cosine * upper + sine * rest[j]
            rest[j] = cosine * rest[j] - sine * upper


def _solve_upper_transposed(factor: Array, x: Array) -> None:
    dim = len(x)
    fours = dim - dim % 4
    for k in range(0, fours, 4):
        u, (a, b, c, d) = factor[k : k + 4, k : k + 4].tolist(), x[k : k + 4].tolist()
        a /= u[0][0]
        b = (b - u[0][1] * a) / u[1][1]
        c = (c - u[0][2] * a - u[1][2] * b) / u[2][2]
        d = (d - u[0][3] * a - u[1][3] * b - u[2][3] * c) / u[3][3]
        x[k : k + 4] = a, b, c, d
        p, q, r, s = factor[k : k + 4, k + 4 :]
        x[k + 4 :] -= (p * a + q * b) + (r * c + s * d)
    for k in range(fours, dim):
        x[k] /= factor[k, k]
        x[k + 1 :] -= factor[k, k + 1 :] * x[k]


@vectorised(_solve_upper_transposed)
def solve_upper_transposed(factor: Array, x: Array) -> None:
    """Solve Uᵀy = x for y, in place; four rows at once, so that x is loaded and stored a quarter as often."""
    dim = x.shape[0]
    fours = dim - dim % 4
    for k in range(0, fours, 4):
        a = x[k] / factor[k, k]
        b = (x[k + 1] - factor[k, k + 1] * a) / factor[k + 1, k + 1]
        c = (x[k + 2] - factor[k, k + 2] * a - factor[k + 1, k + 2] * b) / factor[k + 2, k + 2]
        d = x[k + 3] - factor[k, k + 3] * a - factor[k + 1, k + 3] * b - factor[k + 2, k + 3] * c
        d /= factor[k + 3, k + 3]
        x[k], x[k + 1], x[k + 2], x[k + 3] = a, b, c, d
        for j in range(k + 4, dim):
            upper = factor[k, j] * a + factor[k + 1, j] * b
            x[j] -= upper + (factor[k + 2, j] * c + factor[k + 3, j] * d)
    for k in range(fours, dim):
        x_k = x[k] / factor[k, k]
        x[k] = x_k
        for j in range(k + 1, dim):
            x[j] -= factor[k, j] * x_k


def _subtract_products(rows: Array, x: Array, first: int, end: int) -> Array:
    """Return x[first:end] less the products of `rows` with what is solved already, from `end` on, one by one."""
    terms = np.concatenate((x[first:end, None], rows[:, end:] * x[end:]), axis=1)
    left: Array = np.subtract.reduce(terms, axis=1)
    return left


def _solve_upper(factor: Array, x: Array) -> None:
    dim = len(x)
    fours = dim - dim % 4
    for k in range(dim - 1, fours - 1, -1):
        x[k] = _subtract_products(factor[k : k + 1], x, k, k + 1)[0] / factor[k, k]
    for k in range(fours - 4, -1, -4):
        u = factor[k : k + 4, k : k + 4].tolist()
        a, b, c, d = _subtract_products(factor[k : k + 4], x, k, k + 4).tolist()
        d /= u[3][3]
        c = (c - u[2][3] * d) / u[2][2]
        b = (b - u[1][3] * d - u[1][2] * c) / u[1][1]
        a = (a - u[0][3] * d - u[0][2] * c - u[0][1] * b) / u[0][0]
        x[k : k + 4] = a, b, c, d


@vectorised(_solve_upper)
def solve_upper(factor: Array, x: Array) -> None:
    """Solve Uy = x for y, in place."""
    dim = x.shape[0]
    fours = dim - dim % 4
    for step in range(dim - fours):
        k = dim - 1 - step
        rest = x[k]
        for j in range(k + 1, dim):
            rest -= factor[k, j] * x[j]
        x[k] = rest / factor[k, k]
    for step in range(4, fours + 1, 4):  # four rows at once: one subtraction need not wait for the other
        k = fours - step
        a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(k + 4, dim):
            a -= factor[k, j] * x[j]
            b -= factor[k + 1, j] * x[j]
            c -= factor[k + 2, j] * x[j]
            d -= factor[k + 3, j] * x[j]
        d /= factor[k + 3, k + 3]
        c = (c - factor[k + 2, k + 3] * d) / factor[k + 2, k + 2]
        b = (b - factor[k + 1, k + 3] * d - factor[k + 1, k + 2] * c) / factor[k + 1, k + 1]
        a = (a - factor[k, k + 3] * d - factor[k, k + 2] * c - factor[k, k + 1] * b) / factor[k, k]
        x[k], x[k + 1], x[k + 2], x[k + 3] = a, b, c, d


def _whiten(factor: Array, columns: Array) -> None:
    dim = len(factor)
    fours = dim - dim % 4
    for i in range(0, fours, 4):
        u, (a, b, c, d) = factor[i : i + 4, i : i + 4].tolist(), columns[i : i + 4]
        a /= u[0][0]
        b[:] = (b - u[0][1] * a) / u[1][1]
        c[:] = (c - u[0][2] * a - u[1][2] * b) / u[2][2]
        d[:] = (d - u[0][3] * a - u[1][3] * b - u[2][3] * c) / u[3][3]
        e, f, g, h = factor[i : i + 4, i + 4 :, None]
        columns[i + 4 : dim] -= (e * a + f * b) + (g * c + h * d)
    for i in range(fours, dim):
        columns[i] /= factor[i, i]
        columns[i + 1 : dim] -= factor[i, i + 1 :, None] * columns[i]


@vectorised(_whiten)
def whiten(factor: Array, columns: Array) -> None:
    """Multiply the first d numbers of each column by U⁻ᵀ, in place: their squares then add up to norms in (UᵀU)⁻¹."""
    dim, count = factor.shape[0], columns.shape[1]
    fours = dim - dim % 4
    for i in range(0, fours, 4):  # four rows at once: those below are loaded and stored a quarter as often
        for k in range(count):
            a = columns[i, k] / factor[i, i]
            b = (columns[i + 1, k] - factor[i, i + 1] * a) / factor[i + 1, i + 1]
            c = (columns[i + 2, k] - factor[i, i + 2] * a - factor[i + 1, i + 2] * b) / factor[i + 2, i + 2]
            d = columns[i + 3, k] - factor[i, i + 3] * a - factor[i + 1, i + 3] * b - factor[i + 2, i + 3] * c
            columns[i, k], columns[i + 1, k], columns[i + 2, k] = a, b, c
            columns[i + 3, k] = d / factor[i + 3, i + 3]
        for j in range(i + 4, dim):
            e, f, g, h = factor[i, j], factor[i + 1, j], factor[i + 2, j], factor[i + 3, j]
            for k in range(count):
                upper = e * columns[i, k] + f * columns[i + 1, k]
                columns[j, k] -= upper + (g * columns[i + 2, k] + h * columns[i + 3, k])
    for i in range(fours, dim):
        for k in range(count):
            columns[i, k] /= factor[i, i]
        for j in range(i + 1, dim):
            entry = factor[i, j]
            for k in range(count):
                columns[j, k] -= entry * columns[i, k]
