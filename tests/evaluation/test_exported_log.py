"""The log of a service, exported and evaluated: from live decisions to what another policy would have earned."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from fake_clocks import FakeClocks

import latecomer as lc
from latecomer.evaluation import frozen
from latecomer.service.tools.export import export

MINUTE = 60 * 10**6
DECISIONS = 300
RATES = {"red": 0.1, "blue": 0.4}
FEATURES: dict[str, Any] = {"red": {"colour": "red"}, "blue": {"colour": "blue"}}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Decisions every ten minutes over two days; conversions an hour later, while the bandit learns."""
    path = tmp_path_factory.mktemp("store") / "shop.db"
    clocks, rng = FakeClocks(), np.random.default_rng(0)
    waiting: list[tuple[int, str]] = []
    parameters = {"floor": 0.4, "draws": 16, "seed": 0}
    with lc.open(path, name="shop", dim=5, window="6h", parameters=parameters, clock=clocks) as bandit:
        for i in range(DECISIONS):
            clocks.advance(10 * MINUTE)
            while waiting and waiting[0][0] < i:
                bandit.convert(waiting.pop(0)[1])
            answer = bandit.decide_features(FEATURES, context={"half": "am" if i % 2 else "pm"})
            if rng.random() < RATES[str(answer.action_id)]:
                waiting.append((i + 5, answer.decision_id))
    return pl.concat([frame for kind, frame in export(path, "shop") if kind == "decisions"])


def test_an_exported_log_needs_no_names(table: pl.DataFrame, tmp_path: Path) -> None:
    table.write_parquet(tmp_path / "shop.parquet")
    log = lc.read_log(tmp_path / "shop.parquet")
    assert (log.decisions, log.skipped) == (DECISIONS, {})
    seen: list[str] = []

    def play_blue(context: Any, actions: Any) -> int:
        seen.append(context["half"])
        assert actions.shape == (2, 5)
        return 1

    policies = {"blue": play_blue, "index": 1, "uniform": "uniform", "ours": frozen(lc.recommended(5, "6h", seed=0))}
    found = lc.evaluate(log, policies, window="6h", estimator=["snips", "dr"])
    assert seen == ["pm", "am"] * (DECISIONS // 2)
    values = {(row["policy"], row["estimator"]): row for row in found.table.iter_rows(named=True)}
    assert values["blue", "snips"] == values["index", "snips"] | {"policy": "blue"}
    assert values["blue", "snips"]["low"] < RATES["blue"] < values["blue", "snips"]["high"]
    assert values["uniform", "dr"]["low"] < np.mean(list(RATES.values())) < values["uniform", "dr"]["high"]
    assert values["ours", "snips"]["value"] > values["uniform", "snips"]["value"]


def test_names_of_actions_and_their_features_can_be_context(table: pl.DataFrame) -> None:
    log = lc.read_log(table, context=["features", "action_ids"])

    def play_by_name(context: Any, actions: Any) -> int:
        assert [one["colour"] for one in context["features"]] == context["action_ids"]
        return int(context["action_ids"].index("blue"))

    found = lc.evaluate(log, {"name": play_by_name, "index": 1}, window="6h").table
    assert found.filter(policy="name")["value"][0] == found.filter(policy="index")["value"][0]
