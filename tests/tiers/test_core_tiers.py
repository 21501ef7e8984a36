"""Both tiers of kernels of the core that no short play of a policy reaches do the same to the last bit."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from latecomer.core.linalg.cholesky import solve_upper, solve_upper_transposed, whiten
from latecomer.core.ridge_statistics import residual, short_residual
from latecomer.core.rng import fill_normals
from latecomer.core.sampling import count_wins, shorten_spread
from latecomer.tiers.interpreter import interpret
from latecomer.tiers.tiered_kernel import TieredKernel

SAMPLING: dict[Callable[..., Any], Callable[[], tuple[Any, ...]]] = {
    fill_normals: lambda: (np.uint64(1), np.empty((1, 1))),
    shorten_spread: lambda: (np.empty((1, 1)), np.empty((1, 1))),
    count_wins: lambda: (np.empty(1), np.empty((1, 1)), np.empty((1, 1)), 1, np.empty(1)),
}
SOLVES: dict[Callable[..., Any], Callable[[], tuple[Any, ...]]] = {
    solve_upper: lambda: (np.eye(1), np.ones(1)),
    solve_upper_transposed: lambda: (np.eye(1), np.ones(1)),
    whiten: lambda: (np.eye(1), np.eye(1)),
}


@pytest.mark.parametrize("dim", [1, 5, 16])
def test_tiers_measure_the_same_drift(dim: int) -> None:
    """The check of V⁻¹ is due every 1,024 rounds, which other tests do not play."""
    kernel = TieredKernel(short_residual, lambda: (np.eye(1), np.eye(1)))
    rng = np.random.default_rng(dim)
    factor = rng.standard_normal((dim, dim))
    V = factor @ factor.T + np.eye(dim)
    right: Any = np.linalg.inv(V)
    for V_inv in (right, right + rng.standard_normal((dim, dim)), np.nan * right):
        np.testing.assert_array_equal(kernel.compile()(V, V_inv), short_residual(V, V_inv))
        assert short_residual(V, V_inv) == pytest.approx(residual(V, V_inv), abs=1e-12, rel=1e-9, nan_ok=True)


def test_tiers_solve_the_same() -> None:
    """Four rows at once, and what is left of them."""
    for function, examples in SOLVES.items():
        compiled = TieredKernel(function, examples).compile()
        for dim in (*range(1, 10), 23):
            rng = np.random.default_rng(dim)
            factor = np.triu(rng.standard_normal((dim, dim))) + 3.0 * np.eye(dim)
            ours = rng.standard_normal((dim, 3) if function is whiten else dim)
            theirs = ours.copy()
            interpret(function, factor, ours)
            compiled(factor, theirs)
            np.testing.assert_array_equal(ours, theirs)


def test_tiers_count_the_same_wins_of_samples() -> None:
    """Compare the parts of a sampler's chances, with more actions than dimensions and with fewer."""
    rng = np.random.default_rng(0)
    kernels = {function: TieredKernel(function, examples) for function, examples in SAMPLING.items()}
    for dim, count in ((3, 7), (12, 4)):
        means, spread = rng.standard_normal(count), rng.standard_normal((dim, count))
        short, normals, wins = np.zeros((count, count)), np.zeros((dim, 9)), np.zeros(count)
        calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (fill_normals, (np.uint64(12345), normals)), (shorten_spread, (spread, short)),
            (count_wins, (means, spread, normals, 17, wins)),
        ]  # fmt: skip
        for function, arguments in calls:
            ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
            assert interpret(function, *ours) == kernels[function].compile()(*theirs)
            for mine, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(mine, other)
            if function is fill_normals:
                normals[:] = ours[1]
    assert wins.sum() == 0.0 < ours[-1].max() < 17.0
