"""The window's advice: every number of the table from first principles, and a choice that can be explained."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import latecomer as lc
from latecomer.errors import FileError, InputError
from latecomer.experiments.window.advice import WindowAdvice, advise_window
from latecomer.experiments.window.cost import Setting, advised_policy, choose_scale, make_world
from latecomer.experiments.window.runs import PairedRuns
from latecomer.experiments.window.source import read_law_delays
from latecomer.simulation.simulate import Played, ThreadEngine
from latecomer.theory import upper_bound

DAY = 86_400.0
DIM = 5
"""That of the paper, for which other tests compile."""
LAW = lc.delays.LogNormal(median=1800, sigma=1.0)
SMALL: dict[str, Any] = {"dim": DIM, "rounds": 3000, "runs": 4, "horizon": timedelta(days=5)}


@pytest.fixture(scope="module")
def advice() -> WindowAdvice:
    return advise_window(LAW, rate=100, conversion_rate=0.2, **SMALL)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    decided = np.sort(rng.uniform(0.0, 10 * DAY, 20_000))
    converted = decided + LAW.sample(rng, 20_000)
    seen = (rng.random(20_000) < 0.2) & (converted <= 10 * DAY)
    table = pl.DataFrame({"decided_at": decided, "converted_at": np.where(seen, converted, np.nan)})
    table.write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_share_that_a_window_keeps_is_that_of_the_law(advice: WindowAdvice) -> None:
    longest = advice.facts["longest_seconds"]
    expected = [LAW.cdf(min(seconds, longest)) / LAW.cdf(longest) for seconds in advice.table["seconds"]]
    np.testing.assert_allclose(advice.table["share"], expected, rtol=1e-12)
    assert advice.table["share"][-1] == 1.0
    assert LAW.cdf(longest) >= 0.99 * LAW.cdf(365 * DAY)
    assert (advice.table["share"] >= 0.01).all()


def test_theory_is_theorem_2_with_the_share_for_tau(advice: WindowAdvice) -> None:
    for seconds, share, bound in advice.table.select("seconds", "share", "bound").iter_rows():
        window = math.floor(100 * seconds / 3600)
        assert bound == upper_bound(12_000, dim=DIM, window=window, tau=share)
    by_theory = advice.table["seconds"][int(advice.table["bound"].arg_min() or 0)]
    assert advice.by_theory == timedelta(seconds=by_theory)


def test_memory_is_what_a_pending_decision_takes(advice: WindowAdvice) -> None:
    expected = 100 * advice.table["seconds"].to_numpy() / 3600 * (8 * DIM + 32)
    np.testing.assert_allclose(advice.table["memory_bytes"], expected, atol=0.5)


def test_regret_is_that_of_simulate(advice: WindowAdvice) -> None:
    """Simulate the world, policies and draws of the advice through the public interface.

    A round stands for four decisions, of which one in five converts: a quarter is the most, 1.25 times as often.
    """
    known = read_law_delays(LAW, unit=timedelta(seconds=1), longest=None, rate=100, conversion_rate=0.2)
    setting = Setting(horizon=5 * DAY, dim=DIM, arms=10, rounds=3000, runs=4, seed=0)
    assert advice.facts["decisions_per_round"] == 4.0
    assert advice.facts["pooled"] == 1.25
    spans = {f"{seconds}": math.floor(100 / 4 * seconds / 3600) for seconds in advice.table["seconds"]}
    policies = {name: advised_policy(DIM, span) for name, span in spans.items()}
    result = lc.simulate(make_world(known, setting), policies, horizon=3000, runs=4, seed=0, common_draws=True)
    expected = [4.0 / 1.25 * result.final(name).mean() for name in policies]
    np.testing.assert_allclose(advice.table["regret"], expected, rtol=1e-12)
    finals = 4.0 / 1.25 * np.stack([result.final(name) for name in policies])
    excess = finals - finals[np.argmin(expected)]
    np.testing.assert_allclose(advice.table["excess"], excess.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(advice.table["excess_error"], excess.std(axis=1, ddof=1) / 2.0, atol=1e-9)


def test_the_simulated_world_has_the_delays_and_the_conversion_rate() -> None:
    known = read_law_delays(LAW, unit=timedelta(seconds=1), longest=None, rate=1200, conversion_rate=0.1)
    world = make_world(known, Setting(horizon=DAY, dim=5, arms=10, rounds=10**6, runs=2, seed=0))
    assert float(world.block(np.random.default_rng(1), 5000).means.mean()) == pytest.approx(0.1, rel=0.02)
    for minutes in (4, 30, 120):  # 20 decisions a minute
        assert world.delays.cdf(20 * minutes) == pytest.approx(LAW.cdf(60 * minutes), abs=0.02)


def test_the_same_seed_gives_the_same_advice_whatever_the_threads(advice: WindowAdvice) -> None:
    again = advise_window(LAW, rate=100, conversion_rate=0.2, jobs=1, **SMALL)
    assert_frame_equal(again.table, advice.table, check_exact=True)
    assert again.reason == advice.reason


def test_a_law_may_count_in_another_unit() -> None:
    law = lc.delays.Geometric(30)
    found = advise_window(law, rate=100, unit=timedelta(minutes=1), conversion_rate=0.2, **SMALL)
    minutes = np.floor(found.table["seconds"].to_numpy() / 60)
    np.testing.assert_allclose(found.table["share"], law.cdf(minutes) / law.cdf(minutes[-1]), rtol=1e-12)


# ---- logs ----


def test_a_log_tells_the_delays_the_rate_and_the_conversions(log: Path) -> None:
    found = advise_window(log, **SMALL)
    assert found.facts["decisions_an_hour"] == pytest.approx(2000 / 24, rel=0.01)
    assert found.facts["conversion_rate"] == pytest.approx(0.2, rel=0.05)
    truth = np.array([LAW.cdf(min(s, found.facts["longest_seconds"])) for s in found.table["seconds"]])
    truth /= LAW.cdf(found.facts["longest_seconds"])
    np.testing.assert_allclose(found.table["share"], truth, atol=0.02)
    assert ((found.table["low"] <= found.table["share"]) & (found.table["share"] <= found.table["high"])).all()
    assert "conversions of 20,000 decisions over 10 d" in found.facts["delays"]


def test_a_log_of_conversions_alone_needs_the_rate(log: Path, tmp_path: Path) -> None:
    pl.read_parquet(log).fill_nan(None).drop_nulls().write_csv(tmp_path / "positives.csv")
    with pytest.raises(InputError, match="rate must be given, in decisions an hour, where every row of the log has"):
        advise_window(tmp_path / "positives.csv", **SMALL)
    end = datetime.fromtimestamp(10 * DAY, UTC)
    every = advise_window(log, rate=500, until=end, conversion_rate=0.2, **SMALL)
    positives = advise_window(tmp_path / "positives.csv", rate=500, until=end, conversion_rate=0.2, **SMALL)
    assert_frame_equal(every.table, positives.table)
    assert positives.facts["decisions_an_hour"] == 500


def test_longest_limits_the_windows(log: Path) -> None:
    found = advise_window(log, longest=timedelta(hours=2), **SMALL)
    assert found.table["window"][-1] == "2 h"
    assert found.table["share"][-1] == 1.0


def test_choose_scale_pools_decisions_into_rounds() -> None:
    setting = Setting(horizon=DAY, dim=DIM, arms=10, rounds=100_000, runs=None, seed=0)
    for rate, rounds, runs, each, pooled in [
        (10, 240, 1000, 1.0, 1.0),
        (2000, 48_000, 83, 1.0, 1.0),
        (10_000, 100_000, 40, 2.4, 2.4),
        (40_000, 100_000, 40, 9.6, 5.0),
    ]:
        known = read_law_delays(LAW, unit=timedelta(seconds=1), longest=None, rate=rate, conversion_rate=0.05)
        found = choose_scale(known, setting)
        assert (found.rounds, found.most_runs, found.each) == (rounds, runs, each)
        assert found.pooled == pytest.approx(pooled)
        assert found.conversion_rate == pytest.approx(0.05 * pooled)


@pytest.mark.parametrize(("singles", "pools"), [(3, 8), pytest.param(10, 25, marks=pytest.mark.soak)])
def test_pooled_rounds_are_close_to_every_decision_by_itself(singles: int, pools: int) -> None:
    """Five decisions a round: regret is within a half of the full simulation's.

    The ratios of the three windows are 1.2, 0.9 and 1.1 (20 and 40 runs, ± 0.15); without pooling 1.8, 1.7 and 2.8.
    """
    known = read_law_delays(LAW, unit=timedelta(seconds=1), longest=None, rate=500, conversion_rate=0.05)
    compared = [900.0, 7200.0, 4 * 3600.0]
    full = Setting(horizon=5 * DAY, dim=DIM, arms=10, rounds=60_000, runs=20, seed=0)
    every = PairedRuns(known, full, compared, engine=ThreadEngine())
    pooled = PairedRuns(known, replace(full, rounds=12_000), compared, engine=ThreadEngine())
    every.extend(singles)
    pooled.extend(pools)
    np.testing.assert_allclose(pooled.costs.mean(axis=1), every.costs.mean(axis=1), rtol=0.5)


def test_runs_that_are_added_are_the_runs_of_a_longer_simulation() -> None:
    known = read_law_delays(LAW, unit=timedelta(seconds=1), longest=None, rate=100, conversion_rate=0.2)
    setting = Setting(horizon=DAY, dim=DIM, arms=10, rounds=500, runs=None, seed=3)
    once, twice = (PairedRuns(known, setting, [900.0, 7200.0], engine=ThreadEngine(jobs)) for jobs in (1, 2))
    once.extend(6)
    twice.extend(2)
    twice.extend(6)
    np.testing.assert_array_equal(once.costs, twice.costs)
    np.testing.assert_array_equal(once.uniform, twice.uniform)


class Interrupted:
    """An engine with Ctrl-C after so many runs."""

    def __init__(self, runs: int) -> None:
        self.runs = runs

    def map(self, play: Callable[[int], dict[str, Any]], runs: int) -> Played:
        for run in range(runs):
            if not self.runs:
                raise KeyboardInterrupt
            self.runs -= 1
            yield run, play(run)


def test_ctrl_c_leaves_the_advice_of_the_runs_that_are_done(advice: WindowAdvice) -> None:
    setting = {**SMALL, "runs": 40}
    found = advise_window(LAW, rate=100, conversion_rate=0.2, engine=Interrupted(4), **setting)
    assert (found.facts["runs"], found.facts["is_interrupted"]) == (4, True)
    assert_frame_equal(found.table.drop("cost"), advice.table.drop("cost"))
    assert any(note.startswith("Interrupted after 4 of at most 40 runs") for note in found.notes)
    assert not advice.facts["is_interrupted"]
    with pytest.raises(KeyboardInterrupt):  # one run has no error
        advise_window(LAW, rate=100, conversion_rate=0.2, engine=Interrupted(1), **setting)


# ---- the choice ----


def test_recommended_window_costs_less_than_the_shortest_and_than_uniform_play(advice: WindowAdvice) -> None:
    chosen = advice.table.filter(pl.col("seconds") == advice.recommended.total_seconds())
    assert chosen["regret"][0] < advice.facts["regret_of_uniform_play"]
    assert chosen["regret"][0] < advice.table["regret"][0]


def test_the_reason_has_the_numbers_of_the_table(advice: WindowAdvice) -> None:
    row = advice.table.filter(pl.col("seconds") == advice.recommended.total_seconds()).row(0, named=True)
    assert advice.reason.startswith(f"{row['window']} keeps {row['share']:.1%} of the conversions that come within")
    assert "playing at random loses" in advice.reason
    assert any("cannot be known from conversions" in note for note in advice.notes)
    assert any("stands for 4 decisions" in note for note in advice.notes)


def test_the_sentence_has_the_windows_of_the_table(advice: WindowAdvice) -> None:
    name, excess = (
        dict(advice.table.select(k, v).iter_rows()) for k, v in (("seconds", "window"), ("window", "excess"))
    )
    ends = (advice.facts["same_from_seconds"], advice.facts["same_to_seconds"])
    low, high, taken = (name[seconds] for seconds in (*ends, advice.recommended.total_seconds()))
    assert not advice.facts["is_clear"]
    assert excess[taken] > 0.05 * advice.facts["regret_of_uniform_play"], "by the mean of these few runs"
    cheapest = min(excess, key=lambda window: excess[window])
    assert (low, high) == (taken, taken)
    assert advice.finding.startswith(f"{taken} and the cheapest, {cheapest}, may cost about the same; take {taken}, ")


def test_dirty_rows_are_in_the_advice(log: Path) -> None:
    clean = pl.read_parquet(log)
    dirty = pl.DataFrame({"decided_at": [5.0, None], "converted_at": [4.0, 7.0]})
    found = advise_window(pl.concat([clean, dirty]), **SMALL)
    assert found.skipped == {"no decision time": 1, "conversion before decision": 1}
    assert found.facts["rows"] == 20_002
    assert found.notes[0].startswith("2 of 20,002 rows skipped: 1 × no decision time, 1 × conversion before decision;")
    assert_frame_equal(found.table, advise_window(log, **SMALL).table)
    with pytest.raises(FileError, match="must have no dirty row where reading is strict; 2 of 20,002 are"):
        advise_window(pl.concat([clean, dirty]), strict=True, **SMALL)
    assert advise_window(log, **SMALL).skipped == {}


def test_the_rate_is_that_of_the_time_when_decisions_were_made(tmp_path: Path) -> None:
    """Watching goes on for nine days after the last decision: there are ten times as many decisions an hour."""
    rows = pl.DataFrame({"decided_at": np.linspace(0.0, DAY, 2401)}).with_columns(
        converted_at=pl.when(pl.int_range(2401) % 10 == 0).then(pl.col("decided_at") + 3600.0)
    )
    found = advise_window(rows, until=datetime.fromtimestamp(10 * DAY, UTC), **SMALL)
    assert found.facts["decisions_an_hour"] == pytest.approx(100, rel=0.001)
    assert "over 1 d, watched for 10 d" in found.facts["delays"]


def test_advice_is_plain_data(advice: WindowAdvice) -> None:
    data = json.loads(json.dumps(advice.to_dict()))
    assert data["recommended_seconds"] == advice.recommended.total_seconds()
    assert (data["finding"], data["skipped"]) == (advice.finding, {})
    assert len(data["windows"]) == advice.table.height


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        (LAW, {}, "rate must be given with a law, in decisions an hour"),
        (LAW, {"rate": 0}, "rate must be above 0"),
        (LAW, {"rate": 1, "until": 5.0}, "until is for logs"),
        (LAW, {"rate": 1, "horizon": 30}, "horizon must be a timedelta above 0"),
        (LAW, {"rate": 1, "unit": timedelta(0)}, "unit must be a timedelta above 0"),
        (LAW, {"rate": 1, "conversion_rate": 2}, r"conversion_rate must be in \[0, 1\]"),
        (LAW, {"rate": 1, "conversion_rate": 0}, "conversion_rate must be above 0"),
        (LAW, {"rate": 1, "runs": 1}, "runs must be at least 2"),
        (lc.delays.Never(), {"rate": 1}, r"Never\(\) must let some conversions come within 365 d"),
        (lc.delays.Fixed(100), {"rate": 1, "longest": timedelta(seconds=9)}, "longest must let some conversions come"),
        (lc.delays.Fixed, {"rate": 1}, "source must be the path of a log, a table, or a delay law"),
        (7, {"rate": 1}, "source must be the path of a log, a table, or a delay law"),
        ("no/such/log.csv", {}, "no/such/log.csv cannot be read: No such file or directory; check the path"),
    ],
)
def test_advise_window_refuses_bad_arguments(source: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        advise_window(source, **arguments)
