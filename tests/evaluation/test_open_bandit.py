"""The uniform logs of a real shop say what its Thompson sampling earned, where the data is at hand."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import latecomer as lc

ROOT = Path(__file__).parents[2]
PLACES = [folder / "shared" / "data" / "open_bandit" for folder in ROOT.parents]
DATA = next((place for place in PLACES if (place / "random-all.parquet").exists()), PLACES[0])

needs_the_data = pytest.mark.skipif(
    not (DATA / "random-all.parquet").exists(), reason="the Open Bandit data is not at hand: ../shared/data/open_bandit"
)


def evaluate_bts(campaign: str, *, estimator: str = "snips") -> lc.Evaluation:
    """Evaluate "bts" on the uniform log: its probabilities, by item and position, as its own log shows its choices."""
    bts = pl.read_parquet(DATA / f"bts-{campaign}.parquet")
    log = lc.read_log(
        pl.read_parquet(DATA / f"random-{campaign}.parquet"),
        decided_at="timestamp",
        action="item_id",
        propensity="propensity_score",
        converted="click",
        context=["position"],
    )
    assert log.skipped == {}
    chances = {}
    for position in (1, 2, 3):
        shown = bts.filter(position=position)["item_id"].cast(pl.String)
        counts = dict(shown.value_counts().iter_rows())
        chances[position] = np.array([counts.get(item, 0) for item in log.items]) / len(shown)
    return lc.evaluate(log, {"bts": lambda context, items: chances[context["position"]]}, estimator=estimator)


@needs_the_data
@pytest.mark.parametrize("estimator", ["snips", "ips", "dr"])
@pytest.mark.parametrize("campaign", ["all", "men"])
def test_the_uniform_log_estimates_the_click_rate_of_bts(campaign: str, estimator: str) -> None:
    found = evaluate_bts(campaign, estimator=estimator)
    row = found.table.filter(policy="bts").row(0, named=True)
    clicks = pl.read_parquet(DATA / f"bts-{campaign}.parquet")["click"].to_numpy()
    own, error = clicks.mean(), np.sqrt(clicks.mean() / len(clicks))
    spread = np.hypot((row["high"] - row["low"]) / (2 * 1.645), error)
    assert abs(row["value"] - own) < 3 * spread
    mean, mean_error = found.details.filter(policy="bts").select("mean_weight", "mean_weight_error").row(0)
    assert abs(mean - 1.0) < 4 * mean_error, "the propensities of the uniform log are right"
    assert any("effective conversions, fewer than 30" in one for one in found.warnings), "38 and 46 clicks are few"


@needs_the_data
def test_what_was_logged_is_the_click_rate() -> None:
    for campaign, clicks in (("all", 38), ("men", 46)):
        found = evaluate_bts(campaign)
        assert found.table.filter(policy="logged")["value"][0] == pytest.approx(clicks / 10_000)
