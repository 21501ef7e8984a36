"""Solves with a Cholesky factor, against SciPy's, in dimensions that are whole blocks of four rows and that are not."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from latecomer.core.linalg.cholesky import solve_upper, solve_upper_transposed, whiten

DIMENSIONS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 50]


def make_factor(dim: int, rng: np.random.Generator) -> np.ndarray:
    """A factor whose lower triangle is not to be read."""
    factor: np.ndarray = np.triu(rng.standard_normal((dim, dim))) / np.sqrt(dim)
    factor[np.tril_indices(dim, -1)] = np.nan
    np.fill_diagonal(factor, rng.uniform(0.5, 2.0, dim))
    return factor


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_solves_are_those_of_scipy(dim: int) -> None:
    rng = np.random.default_rng(dim)
    factor, x = make_factor(dim, rng), rng.standard_normal(dim)
    upper = np.triu(np.nan_to_num(factor))
    forward, backward = x.copy(), x.copy()
    solve_upper_transposed(factor, forward)
    solve_upper(factor, backward)
    np.testing.assert_allclose(forward, solve_triangular(upper, x, trans="T"), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(backward, solve_triangular(upper, x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_whitened_columns_are_those_of_scipy_and_further_rows_stay(dim: int) -> None:
    rng = np.random.default_rng(dim)
    factor, columns = make_factor(dim, rng), rng.standard_normal((dim + 2, 6))
    whitened = columns.copy()
    whiten(factor, whitened)
    expected = solve_triangular(np.triu(np.nan_to_num(factor)), columns[:dim], trans="T")
    np.testing.assert_allclose(whitened[:dim], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(whitened[dim:], columns[dim:])
