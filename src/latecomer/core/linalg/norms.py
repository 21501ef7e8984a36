"""‖a‖² of many actions in the norm of a symmetric matrix M, three ways: short actions, longer ones, long ones.

Short ones take plain loops, longer ones a product with M by BLAS (`dgemm`). Long ones take half of that: with T the
upper triangle of M and D its diagonal aᵀMa = ⟨2Ta − Da, a⟩, and BLAS multiplies by a triangle (`dtrmm`) in half the
time. Both are called by their addresses in SciPy's BLAS, from machine code and from plain Python alike.
"""

import numpy as np

from latecomer.core.jit import kernel, kernel_noinline, vectorised
from latecomer.core.linalg.blas import blas_routine
from latecomer.core.linalg.products import UNROLLED, long_dot
from latecomer.core.state import Array

LONG = 128
"""The smallest dimension for which a triangle is faster."""

CHUNK = 512
"""Actions a BLAS call works on at once: every call packs the matrix anew, and the product takes memory."""

_dgemm = blas_routine("dgemm", arguments=13)
_dtrmm = blas_routine("dtrmm", arguments=11)


def _short_norms(matrix: Array, actions: Array, out: Array) -> None:
    total = np.zeros(len(actions))
    for i in range(len(matrix)):
        below = np.zeros(len(actions))
        for j in range(i):
            below += matrix[i, j] * actions[:, j]
        total += (2.0 * below + matrix[i, i] * actions[:, i]) * actions[:, i]
    out[:] = np.maximum(0.0, total)


@vectorised(_short_norms)
def short_norms(matrix: Array, actions: Array, out: Array) -> None:
    """Compute `squared_norms` by loops."""
    dim = matrix.shape[0]
    for k in range(actions.shape[0]):
        total = 0.0
        for i in range(dim):
            below = 0.0  # symmetry: the lower triangle counts twice
            for j in range(i):
                below += matrix[i, j] * actions[k, j]
            total += (2.0 * below + matrix[i, i] * actions[k, i]) * actions[k, i]
        out[k] = max(0.0, total)


@kernel
def squared_norms(matrix: Array, actions: Array, out: Array) -> None:
    """out[k] = ‖a_k‖² in the norm of a symmetric matrix; rounding makes none of them negative."""
    if matrix.shape[0] <= UNROLLED:
        short_norms(matrix, actions, out)
    elif matrix.shape[0] < LONG:
        norms_by_product(matrix, actions, out)
    else:
        norms_by_triangle(matrix, actions, out)


@kernel_noinline
def norms_by_product(matrix: Array, actions: Array, out: Array) -> None:
    """Compute `squared_norms` by products with the whole matrix."""
    count, dim = actions.shape[0], matrix.shape[0]
    plain, one, zero = np.full(1, 78, np.uint8), np.full(1, 1.0), np.zeros(1)  # 78 is "N"
    rows, columns = np.full(1, dim, np.int32), np.zeros(1, np.int32)
    products = np.zeros((min(CHUNK, count), dim))
    for low in range(0, count, CHUNK):
        high = min(low + CHUNK, count)
        columns[0] = high - low  # BLAS reads arrays the other way: an action is a column
        part = actions[low:high]
        _dgemm(
            plain.ctypes, plain.ctypes, rows.ctypes, columns.ctypes, rows.ctypes, one.ctypes, matrix.ctypes,
            rows.ctypes, part.ctypes, rows.ctypes, zero.ctypes, products.ctypes, rows.ctypes,
        )  # fmt: skip
        for k in range(low, high):
            out[k] = max(0.0, long_dot(products[k - low], actions[k]))


@kernel_noinline
def norms_by_triangle(matrix: Array, actions: Array, out: Array) -> None:
    """Compute `squared_norms` by products with the upper triangle."""
    count, dim = actions.shape[0], matrix.shape[0]
    left, upper, plain = np.full(1, 76, np.uint8), np.full(1, 85, np.uint8), np.full(1, 78, np.uint8)  # "L", "U", "N"
    two, rows, columns = np.full(1, 2.0), np.full(1, dim, np.int32), np.zeros(1, np.int32)
    diagonal = np.zeros(dim)
    for i in range(dim):
        diagonal[i] = matrix[i, i]
    products = np.zeros((min(CHUNK, count), dim))
    for low in range(0, count, CHUNK):
        high = min(low + CHUNK, count)
        for k in range(low, high):
            copy_row(actions, k, products, k - low)
        columns[0] = high - low
        _dtrmm(
            left.ctypes, upper.ctypes, plain.ctypes, plain.ctypes, rows.ctypes, columns.ctypes,
            two.ctypes, matrix.ctypes, rows.ctypes, products.ctypes, rows.ctypes,
        )  # fmt: skip
        for k in range(low, high):
            subtract_product(products, k - low, diagonal, actions, k)
            out[k] = max(0.0, long_dot(products[k - low], actions[k]))


def _copy_row(source: Array, row: int, out: Array, place: int) -> None:
    out[place] = source[row]


@vectorised(_copy_row)
def copy_row(source: Array, row: int, out: Array, place: int) -> None:
    """Copy one row of a matrix to another."""
    for i in range(source.shape[1]):
        out[place, i] = source[row, i]


def _subtract_product(out: Array, place: int, x: Array, matrix: Array, row: int) -> None:
    out[place] -= x * matrix[row]


@vectorised(_subtract_product)
def subtract_product(out: Array, place: int, x: Array, matrix: Array, row: int) -> None:
    """Subtract x times a row of a matrix, entry by entry, from a row of another."""
    for i in range(x.shape[0]):
        out[place, i] -= x[i] * matrix[row, i]
