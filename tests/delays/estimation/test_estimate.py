"""The delay law from conversions alone: against its definition, against others' estimators, and against the truth."""

import json
from typing import Any

import numpy as np
import pytest
from delay_worlds import DELAY_WORLDS, DelayWorld
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from scipy.stats import ecdf

from latecomer import delays
from latecomer.delays import DelayEstimate, DelayLaw
from latecomer.delays.distribution import Delays, Floats

ALMOST_NO_PRIOR = 1e-9


def oracle(conversions: list[tuple[int, int]], *, now: int, window: int, prior: float) -> Floats:
    """F_m straight from the definition, one conversion and one age at a time."""
    seen = [(end - start, min(window, now - 1 - start)) for start, end in conversions]
    seen = [(delay, limit) for delay, limit in seen if delay <= limit]
    shares = np.ones(window + 1)
    for k in range(window + 1):
        for j in range(k + 1, window + 1):
            d = sum(delay == j for delay, _ in seen)
            n = sum(delay <= j <= limit for delay, limit in seen)
            shares[k] *= (prior * j / (j + 1) + n - d) / (prior + n)
    return shares


def seen_by(law: DelayLaw, *, window: int, rounds: int, rate: float, seed: int) -> tuple[Delays, Delays]:
    return DelayWorld("", law, window, rounds, rate).sample(seed)


def estimated(start: Delays, end: Delays, *, window: int, now: int, prior: float = 1.0) -> DelayEstimate:
    """Fed in the order of arrival."""
    estimate = DelayEstimate(window, prior=prior)
    for i in np.argsort(end, kind="stable"):
        assert estimate.add(int(start[i]), int(end[i]))
    estimate.advance(now)
    return estimate


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], int]:
    window = draw(st.integers(0, 6))
    pairs = draw(st.lists(st.tuples(st.integers(-5, 25), st.integers(0, 8)), max_size=25))
    conversions = sorted(((start, start + delay) for start, delay in pairs), key=lambda pair: pair[1])
    return window, conversions, draw(st.integers(-5, 45))


@given(histories(), st.sampled_from([0.3, 1.0]))
def test_estimate_equals_its_definition_at_every_moment(
    history: tuple[int, list[tuple[int, int]], int], prior: float
) -> None:
    window, conversions, until = history
    estimate = DelayEstimate(window, prior=prior)
    for i, (start, end) in enumerate(conversions):
        assert estimate.add(start, end) == (end - start <= window)
        np.testing.assert_allclose(
            estimate.cdf(), oracle(conversions[: i + 1], now=end, window=window, prior=prior), rtol=1e-12
        )
    estimate.advance(until)
    now = max([until, *(end for _, end in conversions)])
    np.testing.assert_allclose(estimate.cdf(), oracle(conversions, now=now, window=window, prior=prior), rtol=1e-12)


@given(histories(), st.randoms(use_true_random=False))
def test_estimate_does_not_depend_on_the_order_of_conversions(
    history: tuple[int, list[tuple[int, int]], int], random: Any
) -> None:
    window, conversions, until = history
    now = max([until, *(end + 1 for _, end in conversions)])
    first, second = DelayEstimate(window), DelayEstimate(window)
    for start, end in conversions:
        first.add(start, end)
    random.shuffle(conversions)
    for start, end in conversions:
        second.add(start, end)
    first.advance(now)
    second.advance(now)
    np.testing.assert_array_equal(first.cdf(), second.cdf())


@given(histories())
def test_estimate_from_dict_continues_where_it_was(history: tuple[int, list[tuple[int, int]], int]) -> None:
    window, conversions, until = history
    one = DelayEstimate(window, prior=0.5)
    for start, end in conversions:
        one = DelayEstimate.from_dict(json.loads(json.dumps(one.to_dict())))
        one.add(start, end)
    whole = DelayEstimate(window, prior=0.5)
    for start, end in conversions:
        whole.add(start, end)
    one.advance(until)
    whole.advance(until)
    assert one.to_dict() == whole.to_dict()


# ---- others' estimators ----


@pytest.mark.parametrize("seed", range(5))
def test_lifelines_left_truncated_kaplan_meier_in_reversed_time(seed: int) -> None:
    window, rounds = 60, 200
    start, end = seen_by(delays.Geometric(25), window=window, rounds=rounds, rate=0.8, seed=seed)
    limit = np.minimum(window, rounds - start)
    assert (limit < window).mean() > 0.1, "truncation must matter"
    # Reversed, a delay is a life that ends at m − D and is watched from m − R on; half a round earlier, as R counts.
    fitted = KaplanMeierFitter().fit(window - (end - start), entry=window - limit - 0.5)
    theirs = fitted.survival_function_at_times(window - 1 - np.arange(window)).to_numpy()  # P(m − D > m − 1 − k)
    ours = estimated(start, end, window=window, now=rounds + 1, prior=ALMOST_NO_PRIOR).cdf()
    np.testing.assert_allclose(ours[:-1], theirs, atol=1e-7)


def test_the_empirical_distribution_where_nothing_is_truncated() -> None:
    window, rounds = 50, 300
    start, end = seen_by(delays.Pareto(1.0, 3.0), window=window, rounds=rounds, rate=0.5, seed=0)
    ours = estimated(start, end, window=window, now=rounds + window + 2, prior=ALMOST_NO_PRIOR).cdf()
    theirs = ecdf(end - start).cdf.evaluate(np.arange(window + 1))
    np.testing.assert_allclose(ours, theirs, atol=1e-7)


# ---- the truth ----


@pytest.mark.parametrize("world", DELAY_WORLDS[:3], ids=lambda world: world.name)
def test_curve_is_unbiased(world: DelayWorld) -> None:
    errors = [world.count(*world.sample(run)).cdf - world.truth for run in range(200)]
    assert abs(np.mean(errors)) < 0.005
    assert np.abs(np.mean(errors, axis=0)).mean() < 0.005


def test_counts_at_once_are_the_counts_one_by_one() -> None:
    world = DELAY_WORLDS[2]
    start, end = world.sample(3)
    ours, other = estimated(start, end, window=world.window, now=world.rounds + 1).curve(), world.count(start, end)
    np.testing.assert_array_equal(ours.events, other.events)
    np.testing.assert_array_equal(ours.at_risk, other.at_risk)
    np.testing.assert_array_equal(ours.closed, other.closed)
    assert ours.closed is not None
    assert 0 < ours.closed.sum() < ours.conversions
    assert ours.conversions == len(start)


def test_a_naive_histogram_is_biased_where_this_is_not() -> None:
    """Without the correction for truncation the estimate is biased."""
    law, window = delays.Geometric(40), 100
    truth = np.asarray(law.cdf(np.arange(window + 1))) / float(law.cdf(window))
    naive = []
    for run in range(50):
        start, end = seen_by(law, window=window, rounds=150, rate=0.9, seed=run)
        naive.append(ecdf(end - start).cdf.evaluate(np.arange(window + 1)) - truth)
    assert np.mean(naive) > 0.03


# ---- a clock ----


def test_a_clock_in_ticks_is_rounds_of_that_length() -> None:
    rng = np.random.default_rng(0)
    start = np.sort(rng.uniform(1.7e9, 1.7e9 + 86_400, 500))
    end = start + rng.exponential(4000.0, 500)
    by_time, by_tick = DelayEstimate(36_000.0, unit=600), DelayEstimate(60)
    for i in np.argsort(end):
        if by_time.add(start[i], end[i]):
            by_tick.add(int(start[i] // 600), int(end[i] // 600))
    np.testing.assert_array_equal(by_time.cdf(), by_tick.cdf())
    assert by_time.maturity(5999.0) == by_time.cdf()[9]
    assert by_time.maturity(6000.0) == by_time.cdf()[10]


def test_exactly_the_window_counts_and_more_does_not() -> None:
    estimate = DelayEstimate(100, unit=30)
    assert estimate.add(29, 129)
    assert not estimate.add(29, 130)
    assert estimate.conversions == 1


# ---- manners ----


def test_only_open_conversions_are_kept_one_by_one() -> None:
    """A stream of any length takes memory for its open conversions alone."""
    estimate = DelayEstimate(10)
    for tick in range(20_000):
        estimate.add(tick, tick + tick % 3)
    assert len(estimate._starts) < 5000
    kept = estimate.to_dict()["open"]
    assert isinstance(kept, list)
    assert len(kept) <= 11
    assert estimate.conversions == 20_000


def test_estimate_without_conversions_is_the_prior() -> None:
    np.testing.assert_allclose(DelayEstimate(3).cdf(), [0.25, 0.5, 0.75, 1.0])
    assert DelayEstimate(0).cdf().tolist() == [1.0]
    assert DelayEstimate(3).law().mean == pytest.approx(1.5)


def test_maturity_takes_an_array_of_ages() -> None:
    estimate = DelayEstimate(3)
    np.testing.assert_allclose(estimate.maturity([-1, 0, 2, 3, 99]), [0.0, 0.25, 0.75, 1.0, 1.0])
    assert estimate.maturity(0) == 0.25
