"""The kernel density of log10 delays."""

import numpy as np
import pytest
from scipy.stats import gaussian_kde

from latecomer import delays


@pytest.mark.parametrize("count", [30, 3000, 30_000])
def test_log10_density_equals_the_unbinned_density(count: int) -> None:
    seconds = delays.Criteo(1).sample(np.random.default_rng(0), count)
    grid = np.linspace(0.0, 6.5, 301)
    whole = gaussian_kde(np.log10(np.maximum(seconds, 1)))(grid)
    assert np.abs(delays.log10_density(seconds, grid) - whole).max() < 1e-3 * whole.max()


def test_log10_density_of_samples_is_that_of_the_law() -> None:
    seconds = delays.Criteo(1).sample(np.random.default_rng(0), 1_000_000)
    grid = np.linspace(1.0, 6.0, 501)  # the kernel smears the cliff at 30 days, beyond this
    assert np.abs(delays.log10_density(seconds, grid) - delays.Criteo().log10_density(grid)).max() < 0.03


def test_log10_density_counts_zero_as_a_second() -> None:
    grid = np.linspace(-1.0, 3.0, 50)
    assert delays.log10_density([0, 0, 100], grid) == pytest.approx(delays.log10_density([1, 1, 100], grid))
