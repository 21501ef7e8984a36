"""Evaluations of whole logs: equal to the formulas, whatever the order and the files; in words and in files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from decision_logs import DAY, make_log, read, tidy

import latecomer as lc
from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation import frozen
from latecomer.evaluation.result import COLUMNS

RULE = {"de": [0.2, 0.8, 0.0], "fr": [0.0, 0.1, 0.9]}


def play_by_country(context: Any, items: Any) -> Any:
    return RULE[context["country"]]


POLICIES: dict[str, Any] = {"best": "c", "uniform": "uniform", "by country": play_by_country}


def define(table: pl.DataFrame, chances: Floats, *, days: float) -> dict[str, float]:
    """SNIPS and IPS by the formulas, row by row, on the same grid."""
    from latecomer.delays.readers.delay_cells import estimate_curve, make_time_grid

    ends = make_time_grid(days * DAY)
    decided = table["ts"].to_numpy()
    delay = (table["bought"].fill_null(np.inf).cast(pl.Float64) - table["ts"]).to_numpy()
    until = max(decided.max(), table["bought"].to_numpy()[table["bought"].is_not_null()].max())
    watched = np.array([sum(ends <= until - one) for one in decided])
    place = np.array([sum(ends < one) for one in delay])
    cells = {"delay": np.where(np.isinf(delay), -1, place), "watched": watched, "len": np.ones(len(decided), np.int64)}
    curve = estimate_curve(cells, ends, prior=1.0)
    f = np.concatenate([[0.0], curve.cdf])[watched]
    y = (place < watched).astype(float)
    w = chances / table["p"].to_numpy()
    return {
        "snips": (w * y).sum() / (w * f).sum(),
        "ips": (w * y).sum() / f.sum(),
        "logged": y.sum() / f.sum(),
        "effective": (w * y).sum() ** 2 / ((w * y) ** 2).sum(),
        "closed": (w * y)[watched == len(ends)].sum() / w[watched == len(ends)].sum(),
    }


def test_evaluation_equals_the_formulas() -> None:
    table = make_log(1500)
    found = lc.evaluate(read(table), POLICIES, window="2d", estimator=["snips", "ips"])
    item = table["item"].to_numpy()
    chances = {
        "best": (item == "c").astype(float),
        "uniform": np.full(1500, 1 / 3),
        "by country": np.array([RULE[one][ord(of) - ord("a")] for one, of in zip(table["country"], item, strict=True)]),
    }
    for name, chance in chances.items():
        expected = define(table, chance, days=2)
        for estimator in ("snips", "ips"):
            row = found.details.filter(policy=name, estimator=estimator).row(0, named=True)
            assert row["value"] == pytest.approx(expected[estimator], rel=1e-9)
            assert row["logged_value"] == pytest.approx(expected["logged"], rel=1e-9)
            assert row["effective_conversions"] == pytest.approx(expected["effective"], rel=1e-9)
            assert row["lift"] == pytest.approx(expected[estimator] / expected["logged"] - 1.0, rel=1e-9)
        row = found.details.filter(policy=name, estimator="snips").row(0, named=True)
        assert row["closed_value"] == pytest.approx(expected["closed"], rel=1e-9)


def test_the_table_has_its_columns_and_what_was_logged() -> None:
    found = lc.evaluate(read(make_log(3000)), {"best": "c"}, window="2d")
    assert tuple(found.table.columns) == COLUMNS
    assert found.table["policy"].to_list() == ["logged", "best"]
    logged = found.table.row(0, named=True)
    assert (logged["lift"], logged["lift_low"], logged["lift_high"]) == (0.0, 0.0, 0.0)
    named = lc.evaluate(read(make_log(3000)), {"best": "c", "as it was": "logged"}, window="2d")
    assert named.table["policy"].to_list() == ["best", "as it was"]


@pytest.mark.parametrize("estimator", ["snips", "dr"])
def test_order_and_files_do_not_matter(estimator: str, tmp_path: Path) -> None:
    table = make_log(4000)
    expected = lc.evaluate(read(table), POLICIES, window="2d", estimator=estimator)
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    for number in range(4):
        shuffled[number * 1000 : (number + 1) * 1000].write_csv(tmp_path / f"{number}.csv")
    found = lc.evaluate(read(tmp_path), POLICIES, window="2d", estimator=estimator)
    for column in found.details.columns[2:]:
        np.testing.assert_allclose(
            found.details[column].cast(pl.Float64), expected.details[column].cast(pl.Float64), rtol=1e-9
        )


def test_dr_is_near_the_truth_and_no_worse_than_ips() -> None:
    truth = (0.03 * 1.5 + 0.03 * 0.8) / 2 * (1 - np.exp(-5))
    errors: dict[str, list[float]] = {"dr": [], "ips": []}
    for seed in range(20):
        found = lc.evaluate(read(make_log(4000, seed=seed)), {"best": "c"}, window="5d", estimator=["dr", "ips"])
        for name, made in errors.items():
            made.append(found.table.filter(policy="best", estimator=name)["value"][0] - truth)
    for made in errors.values():
        assert abs(np.mean(made)) < 3 * np.std(made) / np.sqrt(20)
    assert np.std(errors["dr"]) < 1.1 * np.std(errors["ips"])


def test_columns_of_the_log_can_be_policies() -> None:
    table = make_log(3000).with_columns(
        planned=pl.when(country="fr").then(pl.lit("c")).otherwise(pl.lit("b")),
        chance=(pl.col("item") == "c").cast(pl.Float64),
        scores=pl.Series([[0.1, 0.2, 0.9]] * 3000),
    )
    given = {
        "rule": lambda context, items: "c" if context["country"] == "fr" else 1,
        "column": "planned",
        "fixed": "c",
        "index": 2,
        "chance": "chance",
        "scores": "scores",
    }
    values = lc.evaluate(read(table), given, window="2d").table
    by_name = dict(zip(values["policy"], values["value"], strict=True))
    assert by_name["rule"] == by_name["column"] != by_name["fixed"]
    assert by_name["fixed"] == by_name["index"] == by_name["chance"] == by_name["scores"]
    with pytest.raises(InputError, match="DR needs the probabilities of all actions"):
        lc.evaluate(read(table), {"chance": "chance"}, window="2d", estimator="dr")


def test_offers_are_evaluated_as_items_are() -> None:
    """Three actions in each offer, in an order of its own."""
    table = make_log(3000)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(3) for _ in range(3000)]
    eye = np.eye(3)
    offered = tidy(
        [eye[order].tolist() for order in orders],
        decided_at=table["ts"],
        chosen=[int(np.argmax(order == "abc".index(item))) for order, item in zip(orders, table["item"], strict=True)],
        propensity=table["p"],
        converted_at=table["bought"],
        value=[1.0] * 3000,
        context=table["country"],
    )
    policies = {"best": lambda context, actions: int(np.argmax(actions[:, 2])), "uniform": "uniform"}
    by_items = lc.evaluate(read(table), {"best": "c", "uniform": "uniform"}, window="2d")
    found = lc.evaluate(lc.read_log(offered), policies, window="2d", estimator=["snips", "dr"])
    snips = found.table.filter(estimator="snips")
    np.testing.assert_allclose(snips["value"], by_items.table["value"], rtol=1e-12)
    np.testing.assert_allclose(snips["high"], by_items.table["high"], rtol=1e-12)
    assert found.table.filter(estimator="dr")["value"].is_finite().all()
    assert set(found.tests) == {"action", "drift"}


def test_values_are_weighed() -> None:
    table = make_log(3000).with_columns(price=pl.when(item=pl.lit("c")).then(10.0).otherwise(2.0))
    plain = lc.evaluate(read(table), {"best": "c"}, window="2d").table
    worth = lc.evaluate(read(table, value="price"), {"best": "c"}, window="2d")
    assert worth.table.filter(policy="best")["value"][0] == pytest.approx(10 * plain.filter(policy="best")["value"][0])
    assert worth.facts["is_value"]
    assert worth.text().startswith("Value for each decision within 2 d")


def test_a_window_in_rounds() -> None:
    rng = np.random.default_rng(0)
    rounds = np.arange(4000)
    came = np.where(rng.random(4000) < 0.2, rounds + rng.geometric(1 / 50, 4000), 10**6)
    item = rng.integers(0, 2, 4000)
    table = pl.DataFrame({"decided_at": rounds, "action": item, "propensity": 0.5, "converted_at": came})
    table = table.with_columns(converted_at=pl.when(pl.col("converted_at") < 4000).then("converted_at"))
    found = lc.evaluate(lc.read_log(table), {"one": "1"}, window=200)
    assert found.table["value"][0] == pytest.approx(0.2, abs=0.02)
    assert found.facts["traffic"] is None
    assert found.curve is not None
    assert found.curve.cdf[np.searchsorted(found.curve.ends, 50)] == pytest.approx(1 - np.exp(-1), abs=0.06)


# ---- words, files ----


def test_text_says_what_it_is_worth() -> None:
    found = lc.evaluate(read(make_log(20_000)), {"best": "c"}, window="2d", value=25, currency="EUR", traffic=100_000)
    text = found.text()
    row = found.details.filter(policy="best").row(0, named=True)
    extra = (row["value"] - row["logged_value"]) * 100_000
    assert f"as logged: {100 * row['logged_value']:.2f} % [" in text
    low, high = row["extra_low"], row["extra_high"]
    assert 0.0 < low < extra < high
    assert f"{extra:+,.0f} conversions [{low:+,.0f} to {high:+,.0f}], EUR {extra * 25:,.0f} [{low * 25:,.0f} to" in text
    assert f"{high * 25:,.0f}] a month at your traffic (100,000 decisions)" in text
    assert "judged on" not in text


def test_text_says_what_was_logged_where_a_part_is_judged() -> None:
    found = lc.evaluate(read(make_log(3000)), {"ours": frozen(lc.Uniform(3, "2d", seed=0))}, window="2d")
    row = found.details.filter(policy="ours").row(0, named=True)
    assert 0 < row["rounds"] < 3000
    rate, rounds = f"{100 * row['logged_value']:#.3g} %", f"{row['rounds']:,} decisions"
    assert f"over the {rate} as logged of the {rounds} that it is judged on" in found.text()
    names = [label.get_text() for label in found.plot().axes[0].get_yticklabels()]
    assert [f"of {rounds},\nas logged {rate}" in name for name in names] == [False, True]


def test_an_evaluation_is_written(tmp_path: Path) -> None:
    found = lc.evaluate(read(make_log(3000)), {"best": "c", "uniform": "uniform"}, window="2d")
    paths = found.write(tmp_path / "out")
    assert sorted(path.suffix for path in paths) == [".csv", ".json", ".parquet", ".png", ".svg", ".txt"]
    assert all(path.stat().st_size > 100 for path in paths)
    assert pl.read_csv(tmp_path / "out/evaluation.csv").columns == list(COLUMNS)
    data = json.loads((tmp_path / "out/evaluation.json").read_text())
    assert [row["policy"] for row in data["policies"]] == ["logged", "best", "uniform"]
    assert data["decisions"] == 3000
    assert repr(found) == "Evaluation(logged, best, uniform)"


def test_intervals_at_every_look_hold_the_truth() -> None:
    found = lc.evaluate(read(make_log(10_000)), {"uniform": "uniform"}, window="2d", largest_weight=10.0)
    row = found.details.filter(policy="uniform").row(0, named=True)
    truth = np.mean([0.016, 0.02, 0.03]) * 1.15 * (1 - np.exp(-2))
    assert row["anytime_low"] < truth < row["anytime_high"]
    assert row["high"] - row["low"] < row["anytime_high"] - row["anytime_low"]
    assert "at every look [" in found.text()
    assert not any("at every look" in one for one in found.warnings)
    short = lc.evaluate(read(make_log(3000)), {"uniform": "uniform"}, window="2d", largest_weight=10.0)
    assert any("at every look rest on" in one and "too wide" in one for one in short.warnings)
    with pytest.raises(InputError, match="largest_weight must be at least every weight; got 2"):
        lc.evaluate(read(make_log(2000)), {"best": "c"}, window="2d", largest_weight=2.0)
