"""Bands of the delay curve: against their definition, against Clopper and Pearson, and against the truth."""

from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from delay_worlds import DELAY_WORLDS, DelayWorld, measure_coverage
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln
from scipy.stats import beta, binom

from latecomer.delays import DelayCurve, DelayEstimate
from latecomer.delays.distribution import Delays, Floats
from latecomer.delays.estimation.bands import BANDS, anytime_band, beta_product_band
from latecomer.errors import InputError

Counts = tuple[Delays, Delays]
PROBABILITY_ERROR = 1.5e-4  # of the numeric method
DRAWS = 20_000


def define(counts: Counts, band: str, k: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draws from the laws whose quantiles are the lower and the upper end at k, by the definition."""
    d, n = counts
    product, left = np.ones(DRAWS), np.inf
    for j in range(k + 1, len(d)):
        if d[j] > 0:
            product = product * rng.beta(n[j] - d[j] + 1, d[j], DRAWS)
        left = min(left, n[j] - d[j])
    lower = product * (rng.random(DRAWS) ** (1.0 / left) if left > 0 else 0.0)
    if band == "conservative":
        return lower, product
    mixed = np.where(rng.random(DRAWS) < 0.5, product, lower)
    return mixed, mixed


def count(world: int, seed: int = 1) -> Counts:
    curve = DELAY_WORLDS[world].count(*DELAY_WORLDS[world].sample(seed))
    return curve.events, curve.at_risk


def from_factors(kept: list[int], events: list[int]) -> Counts:
    """Counts whose bins after the first have n_j − d_j and d_j as given: thin above, thick below, as no law gives."""
    d = np.array([5, *events])
    return d, np.array([5, *kept]) + np.append(0, events)


CASES = {
    "a sixth open": count(2),
    "half open": count(6),
    "Pareto": count(7),
    "thin, then many": from_factors([1000, 30, 1], [500, 20, 1]),
    "one watched longer": (np.array([1009, 1000, 0, 0]), np.array([1009, 2001, 1, 1])),
    "thin last and first": from_factors([2, 50, 2], [1, 50, 1]),
    "steep": from_factors([1, 5, 3], [1, 100, 40]),
    "all of a bin": from_factors([0, 4, 9], [3, 2, 5]),
    "the same again": from_factors([5] * 6, [5] * 6),
}


@pytest.mark.parametrize("band", ["mid-p", "conservative"])
@pytest.mark.parametrize("name", CASES)
def test_ends_are_the_quantiles_of_the_definition(name: str, band: Literal["mid-p", "conservative"]) -> None:
    counts, rng = CASES[name], np.random.default_rng(0)
    low, high = beta_product_band(*counts, level=0.9, band=band)
    slack = PROBABILITY_ERROR + 4.0 * np.sqrt(0.05 * 0.95 / DRAWS)
    for k in np.unique(np.linspace(0, len(low) - 2, 4).astype(int)):
        lower, upper = define(counts, band, k, rng)
        # an atom holds the quantile where the probabilities on its two sides do
        assert np.mean(lower < low[k]) - slack <= 0.05 <= np.mean(lower <= low[k]) + slack
        assert np.mean(upper < high[k]) - slack <= 0.95 <= np.mean(upper <= high[k]) + slack


@pytest.mark.parametrize("bins", [300, 5000])
def test_conservative_band_is_clopper_and_pearsons_where_nothing_is_truncated(bins: int) -> None:
    """5,000 bins are more than are worked on at a time."""
    d = np.random.default_rng(bins).integers(0, 3, bins)
    s, n = np.cumsum(d), int(d.sum())
    low, high = beta_product_band(d, s, level=0.9, band="conservative")
    inner = (s > 0) & (s < n)
    np.testing.assert_allclose(low[inner], beta.ppf(0.05, s, n - s + 1)[inner], rtol=1e-9)
    np.testing.assert_allclose(high[inner], beta.ppf(0.95, s + 1, n - s)[inner], rtol=1e-9)
    np.testing.assert_allclose(low[s == n][:-1], 0.05 ** (1.0 / n))
    assert (high[s == n] == 1.0).all()


def test_mid_p_band_is_the_binomials_mid_p_interval_where_nothing_is_truncated() -> None:
    d = np.random.default_rng(0).integers(0, 3, 60)
    s, n = np.cumsum(d), int(d.sum())
    low, high = beta_product_band(d, s, level=0.9)
    inner = (s > 0) & (s < n)
    s, low, high = s[inner], low[inner], high[inner]
    np.testing.assert_allclose(binom.sf(s, n, low) + binom.pmf(s, n, low) / 2, 0.05, atol=PROBABILITY_ERROR)
    np.testing.assert_allclose(binom.cdf(s, n, high) - binom.pmf(s, n, high) / 2, 0.05, atol=PROBABILITY_ERROR)


@st.composite
def curves(draw: st.DrawFn) -> DelayCurve:
    """Curves of conversions that were watched for any time, few or many of them alike."""
    bins = draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, bins - 1), st.integers(0, bins - 1)), max_size=12))
    weights = draw(st.lists(st.sampled_from([1, 2, 1000]), min_size=len(pairs), max_size=len(pairs)))
    came, watched = np.array([sorted(pair) for pair in pairs], np.int64).reshape(-1, 2).repeat(weights, axis=0).T
    events = np.bincount(came, minlength=bins)
    younger = np.cumsum(np.bincount(watched + 1, minlength=bins + 1))[:bins]
    closed = np.bincount(came[watched == bins - 1], minlength=bins)
    return DelayCurve(np.arange(1.0, bins + 1.0), events, np.cumsum(events) - younger, closed=closed)


@settings(max_examples=25)
@given(curves())
def test_every_band_is_monotone_and_wider_at_a_higher_level(curve: DelayCurve) -> None:
    for band in BANDS:
        ends = [curve.confidence_band(level, band=band) for level in (0.5, 0.9, 0.99)]
        for low, high in ends:
            assert (np.diff(low) >= 0.0).all()
            assert (np.diff(high) >= 0.0).all()
            assert (low >= 0.0).all()
            assert (low <= high).all()
            assert low[-1] == high[-1] == 1.0
        for (low, high), (lower, higher) in pairwise(ends):
            assert (lower <= low).all()
            assert (higher >= high).all()


@settings(max_examples=25)
@given(curves(), st.sampled_from([0.5, 0.9, 0.99]))
def test_conservative_band_holds_the_mid_p_band(curve: DelayCurve, level: float) -> None:
    low, high = curve.confidence_band(level)
    lower, higher = curve.confidence_band(level, band="conservative")
    assert (lower <= low * (1.0 + 1e-3)).all()
    assert (higher >= high * (1.0 - 1e-3)).all()


@pytest.mark.parametrize("band", BANDS)
def test_nothing_seen_is_nothing_known(band: str) -> None:
    low, high = DelayEstimate(4).confidence_band(0.9, band=band)  # type: ignore[arg-type]
    assert low.tolist() == [0.0] * 4 + [1.0]
    assert high.tolist() == [1.0] * 5


# ---- the truth ----

SHORT = [world for world in DELAY_WORLDS if world.window <= 200 or "too long" in world.name]


def check_coverage(world: DelayWorld, *, runs: int, least: float, margin: float) -> None:
    """Over all ages at least so much; and near 90 % where five conversions or more are on either side."""
    below, above, conversions = measure_coverage(world, runs=runs)
    inside, truth = 1.0 - below - above, world.truth[:-1]
    assert inside[truth > 0.0].mean() >= least
    enough = conversions * np.minimum(truth, 1.0 - truth) >= 5.0
    assert abs(inside[enough].mean() - 0.9) <= margin


@pytest.mark.parametrize("world", SHORT, ids=lambda world: world.name)
def test_mid_p_band_covers(world: DelayWorld) -> None:
    check_coverage(world, runs=50, least=0.84, margin=0.06)


@pytest.mark.soak
@pytest.mark.parametrize("world", DELAY_WORLDS, ids=lambda world: world.name)
def test_mid_p_band_covers_over_300_runs(world: DelayWorld) -> None:
    check_coverage(world, runs=300, least=0.87, margin=0.03)


# ---- every look ----


def test_anytime_band_is_what_its_definition_keeps() -> None:
    closed = np.array([0, 3, 0, 12, 5, 1, 0])
    low, high = anytime_band(closed, level=0.9)
    f, n = np.linspace(0.0, 1.0, 20_001), int(closed.sum())
    for k, s in enumerate(np.cumsum(closed)[:-1]):
        mixture = beta(0.5, 0.5).expect(lambda g, s=s: g**s * (1 - g) ** (n - s))  # B(½ + S, ½ + n − S)/B(½, ½)
        kept = f[f**s * (1 - f) ** (n - s) > 0.1 * mixture]
        assert low[k] == pytest.approx(kept[0], abs=1e-4)
        assert high[k] == pytest.approx(kept[-1], abs=1e-4)


@pytest.mark.parametrize("runs", [100, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("truth", [0.1, 0.5, 0.95])
def test_anytime_band_holds_at_every_look(runs: int, truth: float) -> None:
    """1,000 conversions looked at one by one, by the definition; the mid-P band is not made for that."""
    n = np.arange(1, 1001)
    s = np.cumsum(np.random.default_rng(0).random((runs, len(n))) < truth, axis=1)
    log_likelihood = s * np.log(truth) + (n - s) * np.log1p(-truth)
    kept = log_likelihood > np.log(0.1) + betaln(0.5 + s, 0.5 + n - s) - betaln(0.5, 0.5)
    assert np.mean(~kept.all(axis=1)) <= 0.1 + 3.0 * np.sqrt(0.09 / runs)
    half = binom.pmf(s, n, truth) / 2
    mid_p = np.minimum(binom.cdf(s, n, truth), binom.sf(s, n, truth) + 2 * half) - half
    assert np.mean((mid_p < 0.05).any(axis=1)) >= 0.4


# ---- manners ----


def test_unknown_bands_are_refused_with_the_names() -> None:
    with pytest.raises(InputError, match="band must be one of 'mid-p', 'conservative', 'anytime'; got 'bayes'"):
        DelayEstimate(3).confidence_band(0.9, band="bayes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="level must be"):
        DelayEstimate(3).confidence_band(1.0)


def test_anytime_needs_closed_rounds() -> None:
    curve = DelayCurve(np.array([1.0, 2.0]), np.array([1, 1]), np.array([1, 2]))
    with pytest.raises(InputError, match="no counts of closed rounds"):
        curve.confidence_band(0.9, band="anytime")
