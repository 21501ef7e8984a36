"""Regret against τ: the fits, the hardest gaps, and in the soak what the report says."""

import numpy as np
import polars as pl
import pytest

from latecomer.experiments.paper import kept_share as share
from latecomer.experiments.paper.setting import Setting, final_table


def make_rows(slope: float, *, gap: float, scale: float) -> list[dict[str, object]]:
    means = {tau: min(scale * tau**slope, 2 / 3 * gap * share.HORIZON) for tau in share.SHARES}
    key = {"curve": share.HARDEST_GAP, "policy": share.VARIANCE, "gap": gap, "horizon": share.HORIZON}
    return [{**key, "share": tau, "mean": mean, "standard_error": 0.05 * mean} for tau, mean in means.items()]


@pytest.mark.parametrize("slope", [-0.5, -1.0])
def test_a_power_is_found_where_regret_has_bent(slope: float) -> None:
    """Points near uniform play are left out of the fit: there the curve is flat, whatever the policy does."""
    rows = pl.DataFrame(make_rows(slope, gap=0.4, scale=700.0))
    hardest = share.find_hardest(rows)
    assert (hardest["mean"] == 8000.0).any() == (slope == -1.0)
    found = share.fit_slopes(hardest)[share.HARDEST_GAP, share.VARIANCE]
    assert found is not None
    assert found.value == pytest.approx(slope, abs=1e-9)
    assert share.fit_slopes(share.find_hardest(rows.filter(pl.col("share") > 0.3))) == {
        (share.HARDEST_GAP, share.VARIANCE): None
    }


def test_the_error_of_a_slope_is_the_deviation_of_slopes_fitted_to_noisy_means() -> None:
    """Slopes of 600 draws; their deviation is within 15 %, five standard errors, of the one that each fit states."""
    exact, rng = share.find_hardest(pl.DataFrame(make_rows(-0.5, gap=0.4, scale=700.0))), np.random.default_rng(0)
    found = []
    for _ in range(600):
        noise = rng.normal(size=len(exact)) * exact["standard_error"].to_numpy()
        found.append(share.fit_slopes(exact.with_columns(pl.col("mean") + pl.Series(noise))))
    slopes = [each for fit in found for each in fit.values() if each is not None]
    assert len(slopes) == 600
    assert np.mean([each.value for each in slopes]) == pytest.approx(-0.5, abs=0.01)
    assert np.std([each.value for each in slopes]) == pytest.approx(slopes[0].error, rel=0.15)


def test_the_hardest_gap_has_the_most_regret() -> None:
    rows = pl.DataFrame([*make_rows(-0.5, gap=0.1, scale=100.0), *make_rows(-0.6, gap=0.4, scale=95.0)])
    hardest = share.find_hardest(rows).sort("share")
    expected = [0.4 if 95 * tau**-0.6 > 100 * tau**-0.5 else 0.1 for tau in sorted(share.SHARES)]
    assert hardest["gap"].to_list() == expected
    assert set(expected) == {0.1, 0.4}


def test_the_window_keeps_the_share() -> None:
    for point in share.list_points(quick=False):
        assert point.experiment.world.delays.cdf(share.WINDOW) == pytest.approx(point.share, rel=1e-12)
        assert np.linalg.norm(point.experiment.world.theta) <= 1


@pytest.mark.soak
def test_the_variance_aware_width_is_ahead_where_few_conversions_are_kept() -> None:
    """At τ ≤ 0.1 at most 0.65 of the tight width's regret, and that at most the exact width's, at every τ."""
    for point in share.list_points(quick=False):
        if point.curve == share.FIXED_GAP:
            table = final_table(Setting(runs=40).play(point.experiment, ""))
            means = dict(table.select("policy", "mean").iter_rows())
            assert means[share.TIGHT] <= means[share.EXACT]
            assert point.share > 0.1 or means[share.VARIANCE] <= 0.65 * means[share.TIGHT]
