"""Norms by loops, by the whole matrix and by a triangle, at their borders."""

from typing import Any

import numpy as np
import pytest

from latecomer.core.jit import kernel
from latecomer.core.linalg.norms import CHUNK, LONG, squared_norms
from latecomer.core.linalg.products import UNROLLED
from latecomer.tiers.interpreter import interpret


@kernel
def norms_of(cell: Any, actions: Any, out: Any) -> None:
    """A matrix of a record, whose type has its shape, as a policy's has."""
    squared_norms(cell[0].matrix, actions, out)


@pytest.mark.parametrize("dim", [1, UNROLLED, UNROLLED + 1, LONG - 1, LONG, LONG + 1])
def test_squared_norms_are_the_quadratic_form(dim: int) -> None:
    rng = np.random.default_rng(dim)
    root = rng.standard_normal((dim, dim))
    cell = np.zeros(1, np.dtype([("tag", np.int64), ("matrix", np.float64, (dim, dim))], align=True))
    cell["matrix"][0] = root @ root.T / dim + np.eye(dim)
    for count in (1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1):
        actions, out = rng.standard_normal((count, dim)), np.empty(count)
        before = actions.copy()
        interpret(norms_of, cell, actions, out)
        expected = np.einsum("ki,ij,kj->k", actions, cell["matrix"][0], actions, optimize=True)
        np.testing.assert_allclose(out, expected, rtol=1e-12)
        np.testing.assert_array_equal(actions, before)


@pytest.mark.parametrize("dim", [2, UNROLLED + 4, LONG])
def test_rounding_makes_none_negative(dim: int) -> None:
    cell = np.zeros(1, np.dtype([("tag", np.int64), ("matrix", np.float64, (dim, dim))], align=True))
    cell["matrix"][0] = -1e-20 * np.eye(dim)  # what rounding may leave of a matrix that is almost 0
    out = np.empty(3)
    interpret(norms_of, cell, np.ones((3, dim)), out)
    assert (out == 0.0).all()
