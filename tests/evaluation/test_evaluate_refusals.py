"""Evaluations that are refused, with the remedy, and those that are warned of."""

from typing import Any

import polars as pl
import pytest
from decision_logs import START, make_log, read

import latecomer as lc
from latecomer.errors import InputError, NotIdentifiableError

# ---- refusals ----


def test_what_cannot_be_identified_is_refused_with_the_remedy() -> None:
    table = make_log(2000)
    bare = lc.read_log(table.drop("p"), decided_at="ts", action="item", converted_at="bought")
    with pytest.raises(NotIdentifiableError, match=r"has no propensities: .*log with a floor from now on"):
        lc.evaluate(bare, {"best": "c"}, window="2d")
    with pytest.raises(
        NotIdentifiableError, match=r"plays actions that the log never has, in 100.0% .*'d'.*floor=0.02"
    ):
        lc.evaluate(read(table, actions=["a", "b", "c", "d"]), {"new": "d"}, window="2d")
    sure = table.with_columns(p=pl.lit(1.0))
    with pytest.raises(NotIdentifiableError, match=r"could not have chosen: the mean weight is 0\.333 ± 0\.000"):
        lc.evaluate(read(sure), {"uniform": "uniform"}, window="2d")
    with pytest.raises(NotIdentifiableError, match=r"as long as the oldest decision was watched.*shorter window"):
        lc.evaluate(read(table), {"best": "c"}, window="365d")


@pytest.mark.parametrize(
    ("policies", "options", "rule"),
    [
        ({"x": "nothing"}, {}, "policy 'x' must be 'logged', 'uniform', an item or a column of the log; got 'nothing'"),
        ({"x": "unifrom"}, {}, "did you mean 'uniform'"),
        ({"x": 7}, {}, "policy 'x' must be the index of an action"),
        ({"x": 1.5}, {}, "a function of"),
        ({"x": lambda context, items: 5}, {}, r"policy 'x' must answer with an index from 0 to 2; for row 1 .* gave 5"),
        ({"x": lambda context, items: {"a": 1}}, {}, r"policy 'x' must answer with an index, or 3 .* gave \{'a': 1\}"),
        ({"x": lambda context, items: None}, {}, "must answer with an index, or 3 probabilities"),
        ({"x": lambda context, items: "z"}, {}, "must answer with the id of an item"),
        ({"x": lambda context, items: [0.5, 0.5]}, {}, "3 probabilities that sum to 1"),
        ({"x": lambda context, items: [0.5, 0.6, -0.1]}, {}, "3 probabilities that sum to 1"),
        ({"x": "c"}, {"window": None}, "window must be given"),
        ({"x": "c"}, {"window": "0d"}, "window must be above 0"),
        ({"x": "c"}, {"estimator": "magic"}, "estimator must be one of"),
        ({"x": "c"}, {"window": 3}, "window must be a time, such as 3d, since the log has times; got 3"),
        ({"x": "c"}, {"confidence": 95}, "confidence must be a probability strictly .*; got 95, 0.9 is usual"),
        ({"x": "c"}, {"currency": "EUR"}, "currency is of value, .*; got 'EUR' alone: give value too"),
        (
            {"x": lambda context, items: context["city"]},
            {},
            "policy 'x', .* raised KeyError for row 1 of the log: 'city'",
        ),
        ({"x": lambda context: 0}, {}, r"policy 'x', a function of \(context, actions\), raised TypeError for row 1"),
        ({"x": "c"}, {"value": -1}, "value must be above 0"),
        (["x"], {}, "policies must be targets by name"),
    ],
)
def test_wrong_arguments_are_refused(policies: Any, options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        lc.evaluate(read(make_log(300)), policies, **({"window": "2d"} | options))
    with pytest.raises(InputError, match="log must be what read_log gave"):
        lc.evaluate("log.csv", {}, window="2d")  # type: ignore[arg-type]


# ---- warnings ----


def test_nothing_is_warned_of_where_nothing_is_wrong() -> None:
    assert lc.evaluate(read(make_log(20_000)), {"best": "c", "uniform": "uniform"}, window="2d").warnings == []


def test_few_effective_conversions_are_warned_of() -> None:
    found = lc.evaluate(read(make_log(1200)), {"best": "c"}, window="2d")
    assert any("best: " in one and "effective conversions, fewer than 30" in one for one in found.warnings)


def test_wrong_propensities_are_warned_of() -> None:
    table = make_log(20_000).with_columns(p=pl.col("p") * 0.8)
    found = lc.evaluate(read(table), {"best": "c"}, window="2d")
    assert any("the propensities are wrong" in one for one in found.warnings)
    assert "WARNING: best: the mean weight is" in found.text()


def test_delays_that_depend_on_the_action_are_warned_of() -> None:
    slow = lc.evaluate(read(make_log(60_000, slow_item=8.0)), {"best": "c"}, window="5d")
    assert any(one.startswith("delays depend on the action") for one in slow.warnings)


def test_delays_that_drift_are_warned_of() -> None:
    table = make_log(40_000)
    half = START + 20_000 * 60
    slower = (
        pl.when(pl.col("ts") >= half).then(pl.col("ts") + 5 * (pl.col("bought") - pl.col("ts"))).otherwise("bought")
    )
    table = table.with_columns(bought=slower).with_columns(
        bought=pl.when(pl.col("bought") <= table["ts"].max()).then("bought")
    )
    found = lc.evaluate(read(table), {"best": "c"}, window="5d")
    assert any(one.startswith("delays drift over the time of the log") for one in found.warnings)
