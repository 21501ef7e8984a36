"""The Cholesky factor of a weighted Gram matrix in many dimensions, G + shift·I = UᵀU, and updates of it.

Beyond a few dozen dimensions a factor no longer fits into the nearest cache, so every row that is loaded serves several
others at once.
"""

import math

import numpy as np

from latecomer.core.jit import vectorised
from latecomer.core.linalg.products import EPSILON
from latecomer.core.state import Array, State

RANK = 4
"""Terms that one pass over a matrix adds: the rows of state.batch."""

LEAST_SHARE = 0.1
"""A downdate that leaves less than this share of a squared pivot cancels too many digits to be used."""


def _add_batch(state: State) -> None:
    gram, rows = state.gram, state.batch
    scaled = state.batch_weights[:, None] * rows
    for i in range(len(gram)):
        a, b, c, d = scaled[:, i].tolist()
        gram[i, i:] += (a * rows[0, i:] + b * rows[1, i:]) + (c * rows[2, i:] + d * rows[3, i:])


@vectorised(_add_batch)
def add_batch(state: State) -> None:
    """G += Σ weight·rrᵀ over the rows r of the batch; the upper triangle alone."""
    gram, rows, weights, dim = state.gram, state.batch, state.batch_weights, state.gram.shape[0]
    for i in range(dim):
        a, b = weights[0] * rows[0, i], weights[1] * rows[1, i]
        c, d = weights[2] * rows[2, i], weights[3] * rows[3, i]
        for j in range(i, dim):
            gram[i, j] += (a * rows[0, j] + b * rows[1, j]) + (c * rows[2, j] + d * rows[3, j])


def _update_factor_by_batch(state: State) -> None:
    factor, rows = state.factor, state.batch
    for k in range(len(factor)):
        pivot, (a, b, c, d) = float(factor[k, k]), rows[:, k].tolist()
        length = math.sqrt(pivot * pivot + ((a * a + b * b) + (c * c + d * d)))
        head = pivot + length
        scale = head / length
        a, b, c, d = a / head, b / head, c / head, d / head
        factor[k, k] = length
        upper, (p, q, r, s) = factor[k, k + 1 :].copy(), rows[:, k + 1 :]
        part = scale * (upper + ((a * p + b * q) + (c * r + d * s)))
        factor[k, k + 1 :] = part - upper
        p -= a * part
        q -= b * part
        r -= c * part
        s -= d * part


@vectorised(_update_factor_by_batch)
def update_factor_by_batch(state: State) -> None:
    """Make U the factor of UᵀU + Σ rrᵀ over the rows r of the batch, which is overwritten; O(d²).

    One Householder reflection for each row of U makes what is below its pivot vanish: backward stable.
    """
    factor, rows, dim = state.factor, state.batch, state.factor.shape[0]
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


def _downdate_factor(state: State) -> bool:
    factor, rest = state.factor, state.u
    for k in range(len(factor)):
        sine = float(rest[k]) / float(factor[k, k])
        share = (1.0 - sine) * (1.0 + sine)
        if not share >= LEAST_SHARE:
            return False
        cosine = math.sqrt(share)
        factor[k, k] *= cosine
        below = rest[k + 1 :]
        upper = (factor[k, k + 1 :] - sine * below) * (1.0 / cosine)
        factor[k, k + 1 :] = upper
        rest[k + 1 :] = cosine * below - sine * upper
    return True


@vectorised(_downdate_factor)
def downdate_factor(state: State) -> bool:
    """Make U the factor of UᵀU − rrᵀ, r in state.u, which is overwritten, by hyperbolic rotations; O(d²).

    Return whether it could be done accurately; if not, U is of no use any more.
    """
    factor, rest, dim = state.factor, state.u, state.factor.shape[0]
    for k in range(dim):
        sine = rest[k] / factor[k, k]
        share = (1.0 - sine) * (1.0 + sine)
        if not share >= LEAST_SHARE:
            return False
        cosine = math.sqrt(share)
        scale = 1.0 / cosine
        factor[k, k] *= cosine
        for j in range(k + 1, dim):
            upper = (factor[k, j] - sine * rest[j]) * scale
            factor[k, j] = upper
            rest[j] = cosine * rest[j] - sine * upper
    return True


def _finish_row_by_vectors(state: State, i: int) -> None:
    factor = state.factor
    factor[i, i] = math.sqrt(max(factor[i, i], EPSILON * (state.gram[i, i] + state.gram_shift)))
    factor[i, i + 1 :] *= 1.0 / factor[i, i]


@vectorised(_finish_row_by_vectors)
def _finish_row(state: State, i: int) -> None:
    """Divide a row by its pivot's root; the pivot may not fall below the rounding error of the diagonal entry."""
    factor = state.factor
    factor[i, i] = math.sqrt(max(factor[i, i], EPSILON * (state.gram[i, i] + state.gram_shift)))
    scale = 1.0 / factor[i, i]
    for j in range(i + 1, factor.shape[0]):
        factor[i, j] *= scale


def _factorise_by_pairs(state: State) -> None:
    gram, factor, dim = state.gram, state.factor, len(state.gram)
    for i in range(dim):
        factor[i, i:] = gram[i, i:]
        factor[i, i] += state.gram_shift
    for i in range(0, dim - 1, 2):
        first, second, fours = factor[i, i:], factor[i + 1, i:], i - i % 4
        for k in range(0, fours, 4):
            a, b, c, d = factor[k : k + 4, i].tolist()
            e, f, g, h = factor[k : k + 4, i + 1].tolist()
            p, q, r, s = factor[k : k + 4, i:]
            first -= (a * p + b * q) + (c * r + d * s)
            second -= (e * p + f * q) + (g * r + h * s)
        for k in range(fours, i):
            a, e = float(factor[k, i]), float(factor[k, i + 1])
            first -= a * factor[k, i:]
            second -= e * factor[k, i:]
        _finish_row(state, i)
        second[1:] -= factor[i, i + 1] * first[1:]
        _finish_row(state, i + 1)
        factor[i + 1, i] = 0.0
    if dim % 2:
        for k in range(dim - 1):
            factor[dim - 1, dim - 1] -= factor[k, dim - 1] * factor[k, dim - 1]
        _finish_row(state, dim - 1)


@vectorised(_factorise_by_pairs)
def factorise_by_pairs(state: State) -> None:
    """Compute U from G, two rows at once, each from four above at once. O(d³/3)."""
    gram, factor, dim = state.gram, state.factor, state.gram.shape[0]
    for i in range(dim):
        for j in range(i, dim):
            factor[i, j] = gram[i, j]
        factor[i, i] += state.gram_shift
    pairs = dim - dim % 2
    for i in range(0, pairs, 2):  # the entry left of the second row's pivot is filled too, and reset
        fours = i - i % 4
        for k in range(0, fours, 4):
            a, b, c, d = factor[k, i], factor[k + 1, i], factor[k + 2, i], factor[k + 3, i]
            e, f, g, h = factor[k, i + 1], factor[k + 1, i + 1], factor[k + 2, i + 1], factor[k + 3, i + 1]
            for j in range(i, dim):
                p, q, r, s = factor[k, j], factor[k + 1, j], factor[k + 2, j], factor[k + 3, j]
                factor[i, j] -= (a * p + b * q) + (c * r + d * s)
                factor[i + 1, j] -= (e * p + f * q) + (g * r + h * s)
        for k in range(fours, i):
            a, e = factor[k, i], factor[k, i + 1]
            for j in range(i, dim):
                factor[i, j] -= a * factor[k, j]
                factor[i + 1, j] -= e * factor[k, j]
        _finish_row(state, i)
        above = factor[i, i + 1]
        for j in range(i + 1, dim):
            factor[i + 1, j] -= above * factor[i, j]
        _finish_row(state, i + 1)
        factor[i + 1, i] = 0.0
    if pairs < dim:
        for k in range(pairs):
            factor[pairs, pairs] -= factor[k, pairs] * factor[k, pairs]
        _finish_row(state, pairs)


def _divide_row_by_vectors(matrix: Array, i: int, divisor: float) -> float:
    row = matrix[i, : i + 1]
    row *= 1.0 / divisor
    return float(np.add.accumulate(np.concatenate(([0.0], row * row)))[-1])


@vectorised(_divide_row_by_vectors)
def _divide_row(matrix: Array, i: int, divisor: float) -> float:
    """Divide the first i + 1 entries of row i; return the sum of their squares."""
    scale, total = 1.0 / divisor, 0.0
    for j in range(i + 1):
        matrix[i, j] *= scale
        total += matrix[i, j] * matrix[i, j]
    return total


def _inverse_square_norm(state: State) -> float:
    factor, dim = state.factor, len(state.factor)
    inverse, total = np.zeros((dim + 1, dim + 1)), 0.0
    for i in range(0, dim, 2):
        second, fours = min(i + 1, dim - 1), i - i % 4
        for k in range(0, fours, 4):
            a, b, c, d = factor[k : k + 4, i].tolist()
            e, f, g, h = factor[k : k + 4, second].tolist()
            p, q, r, s = inverse[k : k + 4, : k + 4]
            inverse[i, : k + 4] -= (a * p + b * q) + (c * r + d * s)
            inverse[i + 1, : k + 4] -= (e * p + f * q) + (g * r + h * s)
        for k in range(fours, i):
            inverse[i, : k + 1] -= factor[k, i] * inverse[k, : k + 1]
            inverse[i + 1, : k + 1] -= factor[k, second] * inverse[k, : k + 1]
        inverse[i, i] = inverse[i + 1, i + 1] = 1.0
        total += _divide_row(inverse, i, factor[i, i])
        if second > i:
            inverse[second, : i + 1] -= factor[i, second] * inverse[i, : i + 1]
            total += _divide_row(inverse, second, factor[second, second])
    return total


@vectorised(_inverse_square_norm)
def inverse_square_norm(state: State) -> float:
    """Return ‖U⁻¹‖² = tr (UᵀU)⁻¹, from U⁻ᵀ, two rows at once, each from four above at once. O(d³/6)."""
    factor, dim = state.factor, state.factor.shape[0]
    inverse = np.zeros((dim + 1, dim + 1))  # an odd dimension has a last row alone, whose partner is not used
    total = 0.0
    for i in range(0, dim, 2):
        second = min(i + 1, dim - 1)
        fours = i - i % 4
        for k in range(0, fours, 4):
            a, b, c, d = factor[k, i], factor[k + 1, i], factor[k + 2, i], factor[k + 3, i]
            e, f, g, h = factor[k, second], factor[k + 1, second], factor[k + 2, second], factor[k + 3, second]
            for j in range(k + 4):
                p, q, r, s = inverse[k, j], inverse[k + 1, j], inverse[k + 2, j], inverse[k + 3, j]
                inverse[i, j] -= (a * p + b * q) + (c * r + d * s)
                inverse[i + 1, j] -= (e * p + f * q) + (g * r + h * s)
        for k in range(fours, i):
            a, e = factor[k, i], factor[k, second]
            for j in range(k + 1):
                inverse[i, j] -= a * inverse[k, j]
                inverse[i + 1, j] -= e * inverse[k, j]
        inverse[i, i] = inverse[i + 1, i + 1] = 1.0
        total += _divide_row(inverse, i, factor[i, i])
        if second > i:
            above = factor[i, second]
            for j in range(i + 1):
                inverse[second, j] -= above * inverse[i, j]
            total += _divide_row(inverse, second, factor[second, second])
    return total
