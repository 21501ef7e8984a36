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
    for k in range(len(x)):
        x[k] /= factor[k, k]
        x[k + 1 :] -= factor[k, k + 1 :] * x[k]


@vectorised(_solve_upper_transposed)
def solve_upper_transposed(factor: Array, x: Array) -> None:
    """Solve Uᵀy = x for y, in place."""
    dim = x.shape[0]
    for k in range(dim):
        x[k] /= factor[k, k]
        for j in range(k + 1, dim):
            x[j] -= factor[k, j] * x[k]


def _solve_upper(factor: Array, x: Array) -> None:
    for k in range(len(x) - 1, -1, -1):
        terms = np.concatenate((x[k : k + 1], factor[k, k + 1 :] * x[k + 1 :]))
        x[k] = np.subtract.reduce(terms) / factor[k, k]


@vectorised(_solve_upper)
def solve_upper(factor: Array, x: Array) -> None:
    """Solve Uy = x for y, in place."""
    dim = x.shape[0]
    for step in range(dim):
        k = dim - 1 - step
        rest = x[k]
        for j in range(k + 1, dim):
            rest -= factor[k, j] * x[j]
        x[k] = rest / factor[k, k]


def _whiten(factor: Array, columns: Array) -> None:
    for i in range(len(factor)):
        columns[i] *= 1.0 / factor[i, i]
        columns[i + 1 : len(factor)] -= factor[i, i + 1 :, None] * columns[i]


@vectorised(_whiten)
def whiten(factor: Array, columns: Array) -> None:
    """Multiply the first d numbers of each column by U⁻ᵀ, in place: their squares then add up to norms in (UᵀU)⁻¹."""
    dim, count = factor.shape[0], columns.shape[1]
    for i in range(dim):
        scale = 1.0 / factor[i, i]
        for k in range(count):
            columns[i, k] *= scale
        for j in range(i + 1, dim):
            entry = factor[i, j]
            for k in range(count):
                columns[j, k] -= entry * columns[i, k]
