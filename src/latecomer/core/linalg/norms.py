"""‖a‖² of many actions in the norm of a symmetric matrix M, three ways: short actions, longer ones, long ones.

Short ones take plain loops, longer ones a product with M by BLAS. Long ones take half of that: with T the upper
triangle of M and D its diagonal aᵀMa = ⟨2Ta − Da, a⟩, and BLAS multiplies by a triangle (`dtrmm`) in half the time.
Numba has no name for `dtrmm`, so kernels call SciPy's by a symbol, whose address `load_dtrmm` sets.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numba import types
from numba.extending import get_cython_function_address, overload

from latecomer.core.jit import kernel
from latecomer.core.linalg.products import UNROLLED, dot
from latecomer.core.state import Array

LONG = 128
"""The smallest dimension for which a triangle is faster."""

CHUNK = 512
"""Actions a BLAS call works on at once: every call packs the matrix anew, and the product takes memory."""

_SYMBOL = "latecomer_dtrmm"
_dtrmm: Any = types.ExternalFunction(_SYMBOL, types.void(*[types.voidptr] * 11))


@cache
def load_dtrmm() -> None:
    """Give kernels SciPy's `dtrmm`, before one for long actions is compiled or loaded; it imports SciPy."""
    from llvmlite.binding import add_symbol  # type: ignore[import-untyped]  # noqa: PLC0415

    address = get_cython_function_address("scipy.linalg.cython_blas", "dtrmm")
    if "int64" in repr(import_module("scipy.linalg.cython_blas").__pyx_capi__["dtrmm"]):
        raise RuntimeError("SciPy's BLAS must count in 32 bits, as its wheels do; this build counts in 64")
    add_symbol(_SYMBOL, address)


@kernel
def squared_norms(matrix: Array, actions: Array, out: Array) -> None:
    """out[k] = ‖a_k‖² in the norm of a symmetric matrix; rounding makes none of them negative."""
    dim = matrix.shape[0]
    if dim > UNROLLED:
        norms_by_blas(matrix, actions, out)
        for k in range(actions.shape[0]):
            out[k] = max(0.0, out[k])
        return
    for k in range(actions.shape[0]):
        total = 0.0
        for i in range(dim):
            below = 0.0  # symmetry: the lower triangle counts twice
            for j in range(i):
                below += matrix[i, j] * actions[k, j]
            total += (2.0 * below + matrix[i, i] * actions[k, i]) * actions[k, i]
        out[k] = max(0.0, total)


def norms_by_blas(matrix: Array, actions: Array, out: Array) -> None:
    """Compute `squared_norms` by BLAS, in the way that the matrix's shape, a part of its type, asks for."""
    raise TypeError("this is for compiled code")


@overload(norms_by_blas, strict=False)  # the signatures are annotated otherwise
def _norms_by_blas(matrix: Any, actions: Any, out: Any) -> Callable[..., None]:
    return _norms_by_triangle if matrix.shape[0] >= LONG else _norms_by_product


def _norms_by_product(matrix: Array, actions: Array, out: Array) -> None:
    count, dim = actions.shape
    products = np.empty((min(CHUNK, count), dim))
    for low in range(0, count, CHUNK):
        high = min(low + CHUNK, count)
        np.dot(actions[low:high], matrix, products[: high - low])
        for k in range(low, high):
            out[k] = dot(products[k - low], actions[k], dim)


def _norms_by_triangle(matrix: Array, actions: Array, out: Array) -> None:
    count, dim = actions.shape
    left, upper, plain = np.full(1, ord("L"), np.uint8), np.full(1, ord("U"), np.uint8), np.full(1, ord("N"), np.uint8)
    two, rows, columns = np.full(1, 2.0), np.full(1, dim, np.int32), np.empty(1, np.int32)
    diagonal = np.empty(dim)
    for i in range(dim):
        diagonal[i] = matrix[i, i]
    products = np.empty((min(CHUNK, count), dim))
    for low in range(0, count, CHUNK):
        high = min(low + CHUNK, count)
        for k in range(low, high):
            for i in range(dim):
                products[k - low, i] = actions[k, i]
        columns[0] = high - low  # BLAS reads arrays the other way: an action is a column
        _dtrmm(
            left.ctypes, upper.ctypes, plain.ctypes, plain.ctypes, rows.ctypes, columns.ctypes,
            two.ctypes, matrix.ctypes, rows.ctypes, products.ctypes, rows.ctypes,
        )  # fmt: skip
        for k in range(low, high):
            for i in range(dim):
                products[k - low, i] -= diagonal[i] * actions[k, i]
            out[k] = dot(products[k - low], actions[k], dim)
