"""The parts of a sampler's probabilities, against the same done one by one."""

import numpy as np
import pytest

from latecomer.core.linalg.products import argmax_first
from latecomer.core.sampling import count_wins, shorten_spread


@pytest.mark.parametrize(("numbers", "count", "samples"), [(1, 1, 1), (3, 7, 17), (12, 4, 64), (6, 6, 33)])
def test_wins_are_those_of_samples_one_by_one(numbers: int, count: int, samples: int) -> None:
    rng = np.random.default_rng(samples)
    means, spread = rng.standard_normal(count), rng.standard_normal((numbers, count))
    normals = rng.standard_normal((numbers, (samples + 1) // 2))
    wins, expected = np.full(count, np.nan), np.zeros(count)
    count_wins(means, spread, normals, samples, wins)
    for z in [*normals.T, *-normals.T][:samples]:
        expected[argmax_first(means + z @ spread)] += 1
    np.testing.assert_array_equal(wins, expected)


def test_ties_are_won_by_the_first() -> None:
    wins = np.zeros(3)
    count_wins(np.zeros(3), np.ones((2, 3)), np.random.default_rng(0).standard_normal((2, 8)), 16, wins)
    assert wins.tolist() == [16.0, 0.0, 0.0]


@pytest.mark.parametrize(("dim", "count"), [(5, 2), (6, 4), (50, 10)])
def test_a_short_spread_has_the_same_covariance(dim: int, count: int) -> None:
    spread, short = np.random.default_rng(dim).standard_normal((dim, count)), np.full((count, count), np.nan)
    shorten_spread(spread, short)
    np.testing.assert_allclose(short.T @ short, spread.T @ spread, rtol=1e-10, atol=1e-10)


def test_a_short_spread_of_equal_actions_has_one_number() -> None:
    spread = np.repeat(np.random.default_rng(1).standard_normal((7, 1)), 3, axis=1)
    short = np.full((3, 3), np.nan)
    shorten_spread(spread, short)
    assert (short[1:] == 0.0).all()
    np.testing.assert_allclose(short.T @ short, spread.T @ spread, rtol=1e-10)
