"""Numbers that can be checked by hand, or were worked out elsewhere."""

import math

import numpy as np
import pytest
from scipy.special import zeta

from latecomer import delays


@pytest.mark.parametrize(
    ("window", "mean", "start", "share"),
    [
        (100, 100, 1, 0.633968),
        (500, 100, 1, 0.993430),
        (100, 500, 1, 0.181433),
        (100, 100, 0, 0.633949),
        (500, 100, 0, 0.993161),
        (100, 500, 0, 0.182740),
    ],
)
def test_geometric_has_its_closed_form(window: int, mean: float, start: int, share: float) -> None:
    assert delays.Geometric(mean, start=start).cdf(window) == pytest.approx(share, abs=5e-7)


def test_geometric_has_its_closed_form_at_extreme_means() -> None:
    assert delays.Geometric(1).cdf([0, 1]).tolist() == [0.0, 1.0]
    assert delays.Geometric(0, start=0).cdf(0) == 1.0
    assert delays.Geometric(4).cdf([0, 1, 2]).tolist() == pytest.approx([0.0, 0.25, 0.4375])
    assert delays.Geometric(1e12).cdf(1) == pytest.approx(1e-12, rel=1e-12)


def test_fixed_and_never_have_their_closed_form() -> None:
    assert delays.Fixed(3).cdf([-1, 2, 2.9, 3, 10**9]).tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert delays.Never().cdf([0, 10**18]).tolist() == [0.0, 0.0]
    assert delays.Never().mean == math.inf


def test_pareto_has_its_closed_form() -> None:
    law = delays.Pareto(2.0, 3.0)
    assert law.cdf([1, 2, 5]).tolist() == pytest.approx([0.0, 0.0, 0.75])  # P(X < 6) = 1 − (3/6)²
    assert law.mean == pytest.approx(3.0 + 9.0 * zeta(2.0, 4.0), rel=1e-12)
    assert delays.Pareto(2.0, 300.0, unit=100.0).mean == law.mean
    assert delays.Pareto(1.0, 3.0).mean == math.inf


@pytest.mark.parametrize("shape", [1.001, 1.5, 3.0, 40.0])
@pytest.mark.parametrize("scale", [0.01, 0.7, 1.0, 5.5, 1234.5])
def test_the_mean_of_a_floored_pareto_is_hurwitz_zeta(shape: float, scale: float) -> None:
    whole = math.floor(scale)
    exact = whole + math.exp(shape * math.log(scale) + math.log(zeta(shape, whole + 1.0)))
    assert delays.Pareto(shape, scale).mean == pytest.approx(exact, rel=1e-10)


def test_log_normal_has_its_closed_form() -> None:
    law = delays.LogNormal(8.0, 2.0)
    assert law.cdf(7) == 0.5  # X < 8, the median
    assert law.cdf([0, 58]).tolist() == pytest.approx([0.14924, 0.84113], abs=2e-5)
    cut = delays.LogNormal(8.0, 2.0, at_most=8.0)
    assert cut.cdf([0, 7, 100]).tolist() == pytest.approx([2 * law.cdf(0), 1.0, 1.0])
    assert delays.LogNormal(800.0, 2.0, unit=100.0).cdf(3) == pytest.approx(law.cdf(3), rel=1e-14)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 2.5])
def test_mean_of_a_wide_log_normal_is_half_a_round_below_the_continuous_one(sigma: float) -> None:
    assert delays.LogNormal(1e7, sigma).mean == pytest.approx(1e7 * math.exp(sigma**2 / 2.0) - 0.5, abs=0.01)


@pytest.mark.parametrize("at_most", [math.inf, 2e6])
def test_mean_of_log_normal_does_not_depend_on_the_number_of_exact_terms(at_most: float) -> None:
    law = delays.LogNormal(50.0, 3.0, at_most=at_most)
    assert law._mean(10_000) == pytest.approx(law._mean(2_000_000), rel=1e-9)
    assert law._mean(10_000) == pytest.approx(law.mean, rel=1e-9)


def test_extreme_log_normals_have_a_mean() -> None:
    assert delays.LogNormal(1e-6, 0.1).mean == 0.0
    assert delays.LogNormal(1e9 + 0.5, 1e-12).mean == pytest.approx(1e9)
    assert delays.LogNormal(1.0, 50.0).mean == math.inf  # e^1250 is beyond the largest number
    assert delays.LogNormal(1e6, 1.0, at_most=30.0).mean == pytest.approx(26.8832035, rel=1e-8)
    assert delays.LogNormal(5.0, 1.0, unit=100.0, at_most=50.0).mean == 0.0


def test_mixture_has_its_closed_form() -> None:
    law = delays.Mixture([delays.Fixed(2), delays.Fixed(10)], [0.25, 0.75])
    assert law.cdf([1, 2, 9, 10]).tolist() == [0.0, 0.25, 0.25, 1.0]
    assert law.mean == 8.0
    thirds = delays.Mixture([delays.Fixed(0)] * 3, [1 / 3] * 3)
    assert thirds.cdf(0) == pytest.approx(1.0)
    assert thirds.weights == (1 / 3, 1 / 3, 1 / 3)


def test_empirical_has_the_steps_of_its_delays() -> None:
    law = delays.Empirical([7, 1, 1, 3])
    assert law.delays.tolist() == [1, 3, 7]
    assert law.shares.tolist() == [0.5, 0.25, 0.25]
    assert law.cdf([0, 1, 6, 7]).tolist() == [0.0, 0.5, 0.75, 1.0]
    assert law.mean == 3.0
    assert delays.Empirical([4, 8, 6], weights=[3.0, 1.0, 0.0]).delays.tolist() == [4, 8]
    never = delays.Empirical([2, delays.NEVER])
    assert never.cdf([1, 2, 2**62, math.inf]).tolist() == [0.0, 0.5, 0.5, 0.5]
    assert never.mean == math.inf
    assert repr(never) == "Empirical(2 distinct delays from 2 to 2, never among them, mean inf)"
    with pytest.raises(ValueError, match="read-only"):
        law.delays[0] = 5


def test_empirical_floors_times_to_rounds() -> None:
    law = delays.Empirical.from_times(np.array([0, 99, 100, 250, 299]), unit=100)
    assert law.delays.tolist() == [0, 1, 2]
    assert law.shares.tolist() == [0.4, 0.2, 0.4]


@pytest.mark.parametrize("unit", [0.25, 1.0, 3.0, 100.0])
def test_histogram_is_the_sum_over_its_rounds(unit: float) -> None:
    """P(⌊X⌋ = k) bin by bin, as the length of the bin's part within [k, k + 1)."""
    ends, shares = [0.7, 4.0, 4.5, 31.0], [0.1, 0.4, 0.0, 0.5]
    law = delays.Histogram(ends, shares, unit=unit)
    chances = np.zeros(200)
    for start, end, share in zip([0.0, *ends], ends, shares, strict=False):
        for k in range(len(chances)):
            chances[k] += share * max(0.0, min(end, (k + 1) * unit) - max(start, k * unit)) / (end - start)
    np.testing.assert_allclose(law.cdf(np.arange(200)), np.cumsum(chances), rtol=0, atol=1e-12)
    assert law.mean == pytest.approx(chances @ np.arange(200), rel=1e-12)
