"""The interval of a running mean: it covers at every look, also where the mean moves, and it is of use."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation.running_mean import bound_running_mean, find_refuted

ROUNDS = 20_000


@pytest.mark.parametrize(("runs", "looks"), [(20, 10), pytest.param(60, 25, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "rates",
    [
        pytest.param(np.full(ROUNDS, 0.05), id="steady"),
        pytest.param(np.linspace(0.05, 0.09, ROUNDS), id="learning"),
        pytest.param(np.repeat([0.02, 0.3], ROUNDS // 2), id="jump"),
    ],
)
def test_it_covers_the_mean_so_far_at_all_looks_at_once(rates: Floats, runs: int, looks: int) -> None:
    """At most 5 % of runs may miss at any look."""
    counts = np.unique(np.geomspace(10, ROUNDS, looks).astype(int))
    means, missed = np.cumsum(rates)[counts - 1] / counts, 0
    for seed in range(runs):
        totals = np.cumsum(np.random.default_rng(seed).random(ROUNDS) < rates)[counts - 1]
        bounds = [bound_running_mean(int(n), float(total)) for n, total in zip(counts, totals, strict=True)]
        missed += any(not low <= mean <= high for (low, high), mean in zip(bounds, means, strict=True))

    assert missed / runs <= 0.05


@pytest.mark.parametrize(("rate", "count"), [(0.03, 2_000), (0.03, 100_000), (0.3, 20_000)])
def test_it_is_at_most_three_times_as_wide_as_one_for_a_single_look(rate: float, count: int) -> None:
    low, high = bound_running_mean(count, rate * count)
    assert low < rate < high
    assert high - low < 3.0 * 2.0 * float(norm.ppf(0.975)) * math.sqrt(rate * (1 - rate) / count)


def test_many_values_are_refuted_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 5000, 50).astype(float)
    totals, values = counts * rng.beta(1, 9, 50), rng.beta(1, 9, 50)
    bounds = [bound_running_mean(int(n), float(total)) for n, total in zip(counts, totals, strict=True)]
    outside = [not low <= value <= high for (low, high), value in zip(bounds, values, strict=True)]
    assert 5 < sum(outside) < 45
    assert find_refuted(counts, totals, values).tolist() == outside


def test_it_narrows_with_confidence_and_mirrors() -> None:
    low, high = bound_running_mean(1000, 100.0)
    assert bound_running_mean(1000, 900.0) == pytest.approx((1 - high, 1 - low))
    wider = bound_running_mean(1000, 100.0, confidence=0.99)
    assert wider[0] < low < high < wider[1]
    assert bound_running_mean(0, 0.0) == (0.0, 1.0)
    assert bound_running_mean(500, 0.0)[0] == 0.0


def test_a_total_beyond_the_count_is_refused() -> None:
    with pytest.raises(InputError, match="between 0 and count"):
        bound_running_mean(3, 4.0)
