"""Window advice does not depend on the seed: several seeds on three logs give one recommendation each."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import latecomer as lc
from latecomer.experiments.window.advice import WindowAdvice

HOUR, DAY = 3600.0, 86_400.0
LOGS: dict[str, tuple[lc.delays.DelayLaw, float, float]] = {
    "quick": (lc.delays.LogNormal(median=0.5 * HOUR, sigma=1.0), 10.0, 0.2),
    "slow": (lc.delays.Geometric(mean=DAY), 60.0, 0.1),
    "heavy tail": (lc.delays.Criteo(seconds_per_round=1), 60.0, 0.15),
}
"""Delays in seconds, days of watching, and the conversion rate."""


def write_log(name: str, folder: Path) -> Path:
    """A log of 6,000 decisions, always the same."""
    law, days, rate = LOGS[name]
    rng = np.random.default_rng(7)
    decided = np.sort(rng.uniform(0.0, days * DAY, 6000))
    converted = decided + law.sample(rng, 6000)
    seen = (rng.random(6000) < rate) & (converted <= days * DAY)
    path = folder / f"{name}.parquet"
    pl.DataFrame({"decided_at": decided, "converted_at": np.where(seen, converted, np.nan)}).write_parquet(path)
    return path


def advise(name: str, folder: Path, *, seeds: int = 10, **setting: Any) -> list[WindowAdvice]:
    path = write_log(name, folder)
    return [lc.advise_window(path, seed=seed, dim=5, arms=4, progress=False, **setting) for seed in range(seeds)]


@pytest.mark.parametrize(("seeds", "runs"), [(2, 6), pytest.param(10, 20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", LOGS)
def test_seeds_agree_on_a_small_budget(name: str, seeds: int, runs: int, tmp_path: Path) -> None:
    """A few runs prove little, and must not move the choice."""
    found = advise(name, tmp_path, seeds=seeds, rounds=1000, runs=runs)
    assert len({one.table["regret"][0] for one in found}) == seeds, "the seeds are different"
    assert {one.recommended for one in found} == {found[0].recommended}
    kept = found[0].table.filter(pl.col("share") >= 0.8)
    assert found[0].recommended.total_seconds() == kept["seconds"].min()


@pytest.mark.soak
@pytest.mark.parametrize("name", LOGS)
def test_ten_seeds_agree_and_are_clear(name: str, tmp_path: Path) -> None:
    found = advise(name, tmp_path, rounds=4000, runs=1280)
    assert {one.recommended for one in found} == {found[0].recommended}
    assert all(one.facts["is_clear"] for one in found)
    assert all(one.finding.startswith("Anything from ") for one in found)
