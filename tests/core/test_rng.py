"""The random numbers that kernels draw for themselves, against SciPy's distributions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from latecomer.core.rng import fill_normals, gamma, normal, reseed, uniform
from latecomer.tiers.interpreter import view

DRAWS = 20_000
MASK = 2**64 - 1
SMALLEST_P = 1e-4


def stream(seed: int) -> Any:
    """The one field that these kernels need."""
    cell = np.zeros(1, [("name", np.int64), ("seed", np.uint64)])
    cell["seed"] = seed
    return view(cell)[0]


def drawn(kernel: Callable[..., float], seed: int, *arguments: float) -> np.ndarray:
    state = stream(seed)
    return np.array([kernel(state, *arguments) for _ in range(DRAWS)])


def test_generator_is_split_mix_64() -> None:
    """The generator's published first outputs from seed 1234567, of which a uniform number shows 52 bits."""
    state = stream(1234567)
    for expected in (6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431):
        assert uniform(state) == ((expected >> 12) + 0.5) / 2**52


def seed_of(output: int) -> int:
    """The seed whose next output that is: every step of the generator can be undone."""
    z = output
    z ^= z >> 31
    z ^= z >> 62
    z = z * pow(0x94D049BB133111EB, -1, 2**64) & MASK
    z ^= (z >> 27) ^ (z >> 54)
    z = z * pow(0xBF58476D1CE4E5B9, -1, 2**64) & MASK
    z ^= (z >> 30) ^ (z >> 60)
    return (z - 0x9E3779B97F4A7C15) & MASK


@pytest.mark.parametrize("output", [0, 1, 2**63, MASK - 1, MASK])
def test_never_0_and_never_1(output: int) -> None:
    """The logarithm of 0 is no number, and a chance of 1 must come true."""
    assert uniform(stream(seed_of(6457827717110365317))) == ((6457827717110365317 >> 12) + 0.5) / 2**52
    assert 0.0 < uniform(stream(seed_of(output))) < 1.0


def test_uniform_draws_follow_the_uniform_distribution() -> None:
    sample = drawn(uniform, 1)
    assert stats.kstest(sample, "uniform").pvalue > SMALLEST_P
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 4 / np.sqrt(DRAWS)


def test_normal_draws_follow_the_normal_distribution() -> None:
    sample = drawn(normal, 2)
    assert stats.kstest(sample, "norm").pvalue > SMALLEST_P
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 4 / np.sqrt(DRAWS)


def test_matrices_are_filled_with_independent_normal_numbers() -> None:
    sample = np.empty((100, DRAWS // 100))
    fill_normals(4, sample)
    first, second = sample.reshape(-1, 2).T  # of one point of the disc
    assert stats.kstest(sample.reshape(-1), "norm").pvalue > SMALLEST_P
    for pair in ((first, second), (first**2, second**2), (first[1:], second[:-1])):
        assert abs(np.corrcoef(*pair)[0, 1]) < 4 / np.sqrt(DRAWS / 2)
    assert stats.kstest(first**2 + second**2, stats.chi2(2).cdf).pvalue > SMALLEST_P


def test_a_matrix_goes_on_where_the_one_before_it_ended() -> None:
    whole, parts = np.empty((5, 6)), np.empty((5, 6))
    last = fill_normals(5, whole)
    seed = fill_normals(5, parts[:2])
    assert fill_normals(seed, parts[2:]) == last
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize("shape", [0.02, 0.3, 0.999, 1.0, 2.5, 400.0])
def test_gamma_draws_follow_the_gamma_distribution(shape: float) -> None:
    sample = drawn(gamma, 3, shape)
    assert stats.kstest(sample, stats.gamma(shape).cdf).pvalue > SMALLEST_P
    assert sample.mean() == pytest.approx(shape, abs=4 * np.sqrt(shape / DRAWS))


def test_a_seed_is_the_bits_of_a_number() -> None:
    first, second, again = stream(0), stream(0), stream(99)
    reseed(first, 0.25)
    reseed(second, np.nextafter(0.25, 1.0))
    reseed(again, 0.25)
    assert first.seed == np.float64(0.25).view(np.uint64)
    assert uniform(first) == uniform(again)
    assert uniform(first) != uniform(second)
