"""The delay curve: right-truncated counts, the prior, and the pointers that follow them."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.core.delay_curve import BINS, bin_edges, bin_from, maturity_in
from latecomer.delays.estimation.bands import beta_product_band
from latecomer.tiers.interpreter import view


def maturity(state: Any, age: int) -> float:
    """F̂_m(age)."""
    return maturity_in(state, bin_from(state, 0, age), age)


@pytest.mark.parametrize("window", [0, 1, 7, 30, 31, 32, 100, 5000, 2**61])
def test_bins_tile_the_window(window: int) -> None:
    edges = bin_edges(window)
    assert (edges[0], edges[-1], len(edges)) == (0, window + 1, BINS + 1)
    steps = np.diff(edges)
    assert (steps >= 0).all()
    if window >= BINS:
        assert (steps > 0).all()
        assert steps[0] <= steps[-1]


def test_before_a_bin_is_covered_every_round_is_mature() -> None:
    state = lc.MaturedLinUCB(2, 100).state.record
    assert [maturity(view(state)[0], age) for age in range(101)] == [1.0] * 101


@pytest.mark.parametrize(("window", "rounds"), [(100, 15), (100, 16), (100, 17), (100, 50), (5000, 300), (10**6, 300)])
def test_before_anything_is_seen_delays_are_uniform_over_what_can_have_been(window: int, rounds: int) -> None:
    """The fifth of fifty rounds stands for the oldest: older than it are four, a sixteenth."""
    policy = lc.MaturedLinUCB(2, window)
    for _ in range(rounds + 1):
        policy.decide([[0.6, 0.6]])
    edges = bin_edges(window)
    oldest = rounds - -(-rounds // 16)
    reach = edges[edges <= oldest].max()
    assert oldest < window
    ages, shares = policy.delay_curve  # type: ignore[misc]
    np.testing.assert_array_equal(ages, edges)
    np.testing.assert_allclose(shares, np.minimum(1.0, edges / reach), atol=1e-12)


def played(mean: float, window: int, rounds: int) -> Any:
    """A policy after so many rounds of one arm, half of which convert, after a geometric delay on {0, 1, …}."""
    policy, rng = lc.MaturedLinUCB(2, window), np.random.default_rng(int(mean))
    due: dict[int, list[int]] = {}
    for t in range(1, rounds + 1):
        policy.decide([[0.6, 0.6]])
        if rng.random() < 0.5:
            due.setdefault(t + int(rng.geometric(1 / (mean + 1))) - 1, []).append(t)
        for round in due.pop(t, []):
            policy.convert(round)
    return policy


@pytest.mark.parametrize(
    ("mean", "rounds", "most"),
    [(60.0, 1000, 0.1), *(pytest.param(mean, 12_000, 0.03, marks=pytest.mark.soak) for mean in (5.0, 60.0))],
)
def test_the_curve_finds_the_law_inside_the_window(mean: float, rounds: int, most: float) -> None:
    """F_m(k) = τ(k)/τ_m, though slow conversions are lost and the young have not had their time.

    Of n conversions, some curve is off by √(ln(2/0.001)/2n) once in a thousand: 0.1 for the 400 of 1,000 rounds (half
    convert, 81 % of them in the window), 0.03 for the 4,900 of 12,000.
    """
    window = 100
    state = played(mean, window, rounds).state.record
    edges = bin_edges(window)
    cdf = 1 - (1 - 1 / (mean + 1)) ** edges  # P(D < e_j)
    np.testing.assert_allclose(state["curve"][0], cdf / cdf[-1], atol=most)


def test_delay_band_is_that_of_the_rounds_that_cover_each_bin() -> None:
    """Counted from all rounds at once: n_j and d_j over the rounds whose age covers bin j."""
    window, rounds, mean = 100, 350, 60.0
    policy, edges = played(mean, window, rounds), bin_edges(window)
    low, high = policy.delay_band(0.9)
    rng, events, at_risk = np.random.default_rng(int(mean)), np.zeros(BINS, int), np.zeros(BINS, int)
    for t in range(1, rounds + 1):
        if rng.random() >= 0.5:
            continue
        delay = int(rng.geometric(1 / (mean + 1))) - 1
        covered = (edges[1:] <= rounds - t) & (delay < edges[1:])
        at_risk += covered
        events += covered & (delay >= edges[:-1])
    expected = beta_product_band(events, at_risk, level=0.9)
    np.testing.assert_allclose([low[1:], high[1:]], expected, rtol=1e-12)
    assert low[0] == high[0] == 0.0


def test_delay_band_is_known_only_as_far_as_the_rounds_are_old() -> None:
    policy = played(20.0, 400, 100)
    low, high = policy.delay_band()
    ages, shares = policy.delay_curve
    np.testing.assert_array_equal(low[shares == 1.0], 1.0)
    np.testing.assert_array_equal(high[shares == 1.0], 1.0)
    assert ages[shares < 1.0].max() < 100
    inside = (shares < 1.0) & (ages > 0)
    assert (low[inside] < high[inside]).all()
    assert lc.ImputedLinTS(2, 100).delay_band() is lc.OTFLinUCB(2, 100).delay_band() is None


def test_delay_curve_does_not_take_a_young_world_for_a_fast_one() -> None:
    """After less than a window, fast conversions are most of what has been seen: that is not most of what will be.

    Of the delays below 169, which more than a sixteenth of the rounds are old enough for, 76 % are below 97; of those
    seen it is 88 %.
    """
    state = played(100.0, 400, 200).state.record
    stay = 100 / 101
    assert maturity(view(state)[0], 97) == pytest.approx((1 - stay**97) / (1 - stay**169), abs=0.08)


def test_a_trial_long_before_the_traffic_does_not_stretch_it() -> None:
    """One decision, and four days later a hundred: nothing but the trial is older than minutes."""
    policy = lc.MaturedLinUCB(2, timedelta(days=7))
    policy.decide([[0.6, 0.6]], at=0.0)
    for i in range(100):
        policy.decide([[0.6, 0.6]], at=4 * 86_400.0 + i)
    ages, shares = policy.delay_curve  # type: ignore[misc]
    assert shares[np.searchsorted(ages, 100.0)] == 1.0
    assert policy.state.number("matured") > 50


@pytest.mark.parametrize("rounds", [250, pytest.param(1500, marks=pytest.mark.soak)])
def test_the_curve_rises_from_0_to_1_whatever_comes(rounds: int) -> None:
    policy, rng = lc.MaturedLinUCB(2, 40), np.random.default_rng(3)
    for t in range(1, rounds):
        policy.decide([[0.6, 0.6]])
        for _ in range(int(rng.integers(0, 4))):
            policy.convert(t - int(rng.integers(0, 45)))
        curve = policy.state.record["curve"][0]
        assert curve[0] == (t <= 2)
        assert curve[-1] == 1.0
        assert (np.diff(curve) >= 0).all()


@pytest.mark.parametrize("rounds", [300, pytest.param(700, marks=pytest.mark.soak)])
def test_weights_add_up_to_what_has_matured(rounds: int) -> None:
    """G's trace is λd + Σ weight·‖A_s‖², and weights are sixteenths."""
    policy = played(20.0, 100, rounds)
    state = policy.state.record
    matured = state["matured"].item()
    assert matured * 16 == int(matured * 16)
    assert rounds - 100 <= matured <= rounds
    assert np.trace(state["gram"][0]) == pytest.approx(2.0 + 0.72 * matured, rel=1e-12)
