"""The built-in heavy-tailed law against the density that it was fitted to, where that is at hand."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from latecomer import delays
from latecomer.delays.distribution import Floats
from latecomer.delays.laws import criteo as criteo_law

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data" / "criteo_delays"

needs_the_density = pytest.mark.skipif(
    not (DATA / "density.txt").exists(), reason="the Criteo density is not at hand: ../shared/data/criteo_delays"
)


def cdf_of_seconds(seconds: list[float] | Floats) -> Floats:
    """P(delay <= seconds), by rounds of a millionth of a second."""
    return delays.Criteo(1e-6).cdf(np.floor(np.asarray(seconds) * 1e6))


def density() -> tuple[Floats, Floats]:
    """The grid of log10 seconds, and the probability of each point."""
    weights = np.loadtxt(DATA / "density.txt")
    return np.loadtxt(DATA / "log10_seconds.txt"), weights / weights.sum()


@needs_the_density
def test_the_cdf_is_that_of_the_density_everywhere() -> None:
    grid, shares = density()
    fitted = cdf_of_seconds(10.0**grid)
    upto = np.cumsum(shares)
    assert np.abs(fitted - upto).max() < 0.003
    assert np.abs(fitted - (upto - shares)).max() < 0.003  # just before each point, too


@needs_the_density
@pytest.mark.parametrize("seconds_per_round", [1, 100, 3600])
def test_the_cdf_in_rounds_is_that_of_the_floored_density(seconds_per_round: float) -> None:
    grid, shares = density()
    data = delays.Empirical(np.floor(10.0**grid / seconds_per_round).astype(np.int64), weights=shares)
    law = delays.Criteo(seconds_per_round)
    assert np.abs(law.cdf(data.delays) - data.cdf(data.delays)).max() < 0.005
    assert law.mean == pytest.approx(data.mean, rel=0.005)


@needs_the_density
def test_the_density_is_that_of_the_figure() -> None:
    grid, shares = density()
    assert np.abs(delays.Criteo().log10_density(grid[:-1]) - shares[:-1] / (grid[1] - grid[0])).max() < 0.01


@needs_the_density
def test_the_script_finds_the_constants_again() -> None:
    """Equal to rounding, for another version of SciPy may stop a little earlier."""
    script = runpy.run_path(str(ROOT / "scripts" / "fit_criteo_law.py"))
    tick, components = script["constants"](DATA)
    assert tick == criteo_law._TICK
    assert np.array(components) == pytest.approx(np.array(criteo_law._COMPONENTS), rel=0.02)


def test_criteo_law_has_the_quoted_shares() -> None:
    law = delays.Criteo(seconds_per_round=100)
    assert law.cdf(0) == pytest.approx(0.073, abs=0.001)
    assert law.cdf(2000) == pytest.approx(0.445, abs=0.001)
    assert law.cdf(10_000) == pytest.approx(0.764, abs=0.001)
    assert law.mean == pytest.approx(5721, rel=0.002)


def test_criteo_law_has_the_quoted_quantiles() -> None:
    shares = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
    rounds = np.array([0.23, 0.67, 1.54, 57.3, 2913, 9495, 16643, 20165, 24433])
    assert np.abs(cdf_of_seconds(100.0 * rounds) - shares).max() < 0.003


def test_criteo_law_ends_at_thirty_days() -> None:
    law = delays.Criteo(100)
    assert law.cdf(25_919) == pytest.approx(1.0, abs=1e-12)
    assert law.cdf(25_800) < 1.0
    assert law.sample(np.random.default_rng(0), 100_000).max() <= 25_919
    assert cdf_of_seconds([0.0, 30 * 86_400.0]).tolist() == pytest.approx([0.0, 1.0])


def test_criteo_law_has_a_point_mass_at_one_second() -> None:
    """The point mass: part of round 1 where a round is a second, of round 0 where it is longer."""
    before, at = cdf_of_seconds([1.0 - 1e-6, 1.0])
    assert at - before == pytest.approx(1.1e-5, rel=1e-3)


def test_density_and_cdf_belong_together() -> None:
    law, grid = delays.Criteo(), np.linspace(-2.0, 6.4136, 20_001)
    heights = law.log10_density(grid)
    areas = np.cumsum((heights[1:] + heights[:-1]) / 2.0 * np.diff(grid))
    assert np.abs(areas - cdf_of_seconds(10.0 ** grid[1:])).max() < 3e-5  # the point mass is no part of a density
    assert law.log10_density([7.0]) == 0.0
