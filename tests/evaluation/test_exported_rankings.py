"""Rankings of a service, exported: evaluated by their first positions, learnt from at all of them."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from fake_clocks import FakeClocks

import latecomer as lc
from latecomer.errors import LogError
from latecomer.policies.base.ranking_policy import estimate_examination
from latecomer.service.tools.export import export

MINUTE = 60 * 10**6
RANKINGS = 240
IDS = ["a", "b", "c", "d"]
EXAMINATION = [1.0, 0.5]
RNG = np.random.default_rng(4)
ROWS = RNG.normal(size=(4, 3)) / 4.0
RATES = np.array([0.2, 0.4, 0.6, 0.8])


class Shop:
    """A store of rankings of two, every fourth decision by itself, and what it holds in the end."""

    def __init__(self, path: Path) -> None:
        self.path, self.answers = path, list[Any]()
        clocks, rng = FakeClocks(), np.random.default_rng(1)
        made: dict[str, Any] = {"dim": 3, "window": "7d", "policy": "Uniform", "parameters": {"seed": 0}}
        with lc.open(path, name="shop", clock=clocks, **made) as bandit:
            for i in range(RANKINGS):
                clocks.advance(MINUTE)
                ranked: dict[str, Any] = {"k": 2, "examination": EXAMINATION} if i % 4 else {}
                answer: Any = bandit.decide(ROWS, ids=IDS, **ranked)
                self.answers.append(answer)
                for entry, seen in zip(getattr(answer, "ranking", [answer]), EXAMINATION, strict=False):
                    if rng.random() < seen * RATES[entry.index]:
                        bandit.convert(entry.decision_id)
            self.theta_hat = bandit.stats().theta_hat
        self.table = pl.concat([frame for kind, frame in export(path, "shop") if kind == "decisions"])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("store") / "shop.db")


def test_an_export_has_the_position_and_its_probabilities(shop: Shop) -> None:
    entries = [(answer, entry) for answer in shop.answers for entry in getattr(answer, "ranking", [answer])]
    places = [getattr(entry, "position", 1) for _, entry in entries]
    assert shop.table["decision_id"].to_list() == [entry.decision_id for _, entry in entries]
    assert shop.table["position"].to_list() == places
    assert shop.table["positions"].to_list() == [2 if hasattr(answer, "ranking") else 1 for answer, _ in entries]
    assert shop.table["inclusion"].to_list() == [entry.propensity for _, entry in entries]
    firsts = [answer.propensity if place == 1 else None for (answer, _), place in zip(entries, places, strict=True)]
    assert shop.table["propensity"].to_list() == firsts
    assert shop.table["examination"].to_list() == [EXAMINATION[place - 1] for place in places]


def test_first_positions_are_evaluated_and_the_others_are_counted(shop: Shop) -> None:
    log = lc.read_log(shop.table)
    later = shop.table["position"].to_list().count(2)
    assert (log.decisions, log.skipped, log.later) == (RANKINGS + later, {}, later)
    policies = {"uniform": "uniform", "third": 2, "ours": lc.evaluation.frozen(lc.Greedy(3, "7d"))}
    found = lc.evaluate(log, policies, window="1h", estimator=["snips", "dr"])
    alone = lc.evaluate(
        lc.read_log(shop.table.filter(position=1)),
        {"uniform": "uniform", "third": 2},
        window="1h",
        estimator=["snips", "dr"],
    )
    assert found.table.filter(pl.col("policy") != "ours").equals(alone.table)
    assert found.facts["decisions"] == RANKINGS
    assert found.facts["skipped"] == {"later position of a ranking": later}
    assert f"{later} × later position of a ranking" in found.text()
    row = found.table.row(by_predicate=(pl.col("policy") == "third") & (pl.col("estimator") == "snips"), named=True)
    assert row["low"] < RATES[2] < row["high"]


def test_what_is_learnt_or_imported_equals_the_store(shop: Shop, tmp_path: Path) -> None:
    log = lc.read_log(shop.table)
    policy = lc.LinUCB(3, "7d")
    policy.learn(log)
    np.testing.assert_allclose(policy.theta_hat, shop.theta_hat, rtol=0, atol=1e-12)
    clocks = FakeClocks()
    clocks.advance(RANKINGS * MINUTE)
    with lc.open(tmp_path / "other.db", dim=3, window="7d", policy="LinUCB", clock=clocks) as bandit:
        bandit.import_log(log)
        np.testing.assert_allclose(bandit.stats().theta_hat, shop.theta_hat, rtol=0, atol=1e-12)


def test_a_log_of_items_has_columns_for_position_and_examination() -> None:
    table = pl.DataFrame(
        {
            "decided_at": [0.0, 0.0, 60.0, 60.0],
            "action": ["a", "b", "b", "a"],
            "converted_at": [30.0, 40.0, None, 90.0],
            "propensity": [0.5, None, 0.5, None],
            "place": [1, 2, None, 2],
            "seen": [1.0, 0.5, None, 0.5],
        }
    )
    log = lc.read_log(table, position="place", examination="seen")
    assert (log.skipped, log.later, log.least_propensity) == ({}, 2, 0.5)
    policy = lc.Greedy(2, "1h")
    policy.learn(log)
    np.testing.assert_allclose(policy.theta_hat, [1.5 / 2.25, 0.5 / 2.25])
    assert lc.evaluate(log, {"b": "b"}, window="20s").facts["decisions"] == 2


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [("place", 0, "position out of range"), ("place", 1.5, "position out of range")]
    + [("seen", cell, "examination out of range") for cell in (0.0, 1.5, float("nan"))],
)
def test_a_position_or_an_examination_that_cannot_be_is_counted(column: str, cell: float, reason: str) -> None:
    table = pl.DataFrame({"decided_at": [0.0] * 2, "action": ["a"] * 2, "converted_at": [None] * 2, "propensity": 0.5})
    cells = {"place": [1.0, 2.0], "seen": [1.0, 0.5]} | {column: [1.0, cell]}
    columns = table.with_columns(**{name: pl.Series(values) for name, values in cells.items()})
    assert lc.read_log(columns, position="place", examination="seen").skipped == {reason: 1}
    with pytest.raises(LogError, match=reason):
        lc.read_log(columns, position="place", examination="seen", strict=True)


def test_examination_is_estimated_from_an_export(shop: Shop) -> None:
    ranked = shop.table.filter(positions=2)
    first, second = estimate_examination(ranked["position"], ranked["converted_at"].is_not_null())
    assert first == 1.0
    assert second == pytest.approx(EXAMINATION[1], abs=0.2)  # its standard error is 0.08
