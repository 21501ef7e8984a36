"""Logs of decisions: every form they come in gives the same rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from decision_logs import START, tidy

import latecomer as lc
from latecomer.errors import FileError, InputError

NAMES: dict[str, Any] = {
    "decided_at": "ts",
    "action": "item",
    "propensity": "p",
    "converted_at": "bought",
    "value": "price",
    "context": ["country", "age"],
}


def make_table(rows: int = 500, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    decided = START + rng.permutation(rows) * 60
    bought = np.where(rng.random(rows) < 0.3, decided + rng.integers(0, 5000, rows), -1)
    return pl.DataFrame(
        {
            "ts": decided,
            "item": rng.choice([11, 12, 13], rows),
            "p": rng.choice([0.25, 0.5], rows),
            "bought": pl.Series(bought).replace(-1, None),
            "price": rng.integers(1, 50, rows) / 2,
            "country": rng.choice(["de", "fr"], rows),
            "age": rng.integers(18, 80, rows),
        }
    )


def collect(log: lc.DecisionLog, *, ordered: bool = False) -> dict[str, Any]:
    parts = range(len(log.parts))
    batches = (
        list(log.ordered_batches(rows=70)) if ordered else [b for part in parts for b in log.batches(part, rows=70)]
    )
    names = ("decided", "delay", "action", "propensity", "value")
    arrays = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
    contexts = [{key: str(cell) for key, cell in one.items()} for batch in batches for one in batch.contexts()]
    return arrays | {"contexts": contexts, "items": log.items}


def write_folder(table: pl.DataFrame, folder: Path) -> Path:
    for number in range(3):
        part = table[number * 200 : (number + 1) * 200]
        part.write_parquet(folder / f"part-{number}.parquet")
    return folder


def write(table: pl.DataFrame, path: Path) -> Path:
    table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
    return path


class Stream:
    """A table of another library, known by its Arrow stream alone."""

    def __init__(self, table: pl.DataFrame) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "form",
    [
        lambda table, folder: write(table, folder / "log.parquet"),
        lambda table, folder: str(write(table, folder / "log.csv")),
        write_folder,
        lambda table, folder: table.lazy(),
        lambda table, folder: Stream(table),
        lambda table, folder: pd.DataFrame(table.to_dict(as_series=False)),
        lambda table, folder: table.with_columns(pl.from_epoch(pl.col("ts", "bought"), "s")),
        lambda table, folder: table.cast({"ts": pl.String, "p": pl.String}),
    ],
    ids=["parquet", "csv", "folder", "lazy", "arrow", "pandas", "times", "texts"],
)
def test_rows_are_the_same_from_every_source(form: Callable[[pl.DataFrame, Path], Any], tmp_path: Path) -> None:
    table = make_table()
    log = lc.read_log(form(table, tmp_path), **NAMES)
    assert (log.decisions, log.skipped, log.items) == (500, {}, ("11", "12", "13"))
    found = collect(log)
    np.testing.assert_array_equal(found["decided"], table["ts"])
    delay = (table["bought"] - table["ts"]).cast(pl.Float64).fill_null(np.inf)
    np.testing.assert_array_equal(found["delay"], np.where(table["bought"] > log.until, np.inf, delay))
    np.testing.assert_array_equal(np.array(log.items)[found["action"]], table["item"].cast(pl.String))
    np.testing.assert_array_equal(found["propensity"], table["p"])
    bought = table["bought"].is_not_null().to_numpy()
    np.testing.assert_array_equal(found["value"][bought], table["price"].to_numpy()[bought])
    assert [one["country"] for one in found["contexts"]] == table["country"].to_list()
    assert [float(one["age"]) for one in found["contexts"]] == table["age"].to_list()
    assert collect(log)["contexts"] == found["contexts"], "it can be read again"


@pytest.mark.parametrize("pieces", [1, 3])
def test_ordered_batches_are_in_the_order_of_time(pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latecomer.evaluation.decision_log._ROWS_PER_RANGE", 90)
    table = make_table()
    log = lc.read_log(table if pieces == 1 else write_folder(table, tmp_path), **NAMES)
    assert not log.is_sorted
    found = collect(log, ordered=True)
    sorted_log = lc.read_log(table.sort("ts"), **NAMES)
    assert sorted_log.is_sorted
    expected = collect(sorted_log, ordered=True)
    for name in ("decided", "delay", "action", "propensity", "value"):
        np.testing.assert_array_equal(found[name], expected[name])
    assert (np.diff(found["decided"]) >= 0).all()


def test_until_hides_what_came_later() -> None:
    table = make_table()
    cut = START + 10_000
    log = lc.read_log(table, until=cut, **NAMES)
    found = collect(log)
    assert found["decided"].max() <= cut
    arrived = found["decided"] + found["delay"]
    assert arrived[np.isfinite(arrived)].max() <= cut
    assert log.until == cut


def test_items_that_were_given_fix_their_order_and_refuse_others() -> None:
    log = lc.read_log(make_table(), actions=["13", "11", "unseen"], **NAMES)
    assert log.items == ("13", "11", "unseen")
    assert log.skipped["unknown action"] == make_table()["item"].eq(12).sum()


def test_the_services_table_needs_no_argument() -> None:
    offers = [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.25, 0.0], [0.0, 0.0]], [[1.0, 1.0]]]
    log = lc.read_log(tidy(offers, chosen=[1, 2, 0], revoked=[False, True, False]))
    assert (log.items, log.decisions) == ((), 3)
    [batch] = log.batches(0)
    assert [one.tolist() for one in batch.offers()] == offers
    assert list(batch.contexts()) == [{"hour": 0}, {"hour": 1}, {"hour": 2}]
    np.testing.assert_array_equal(batch.sizes, [2, 3, 1])
    np.testing.assert_array_equal(batch.action, [1, 2, 0])
    assert np.isinf(batch.delay).all(), "the only conversion was revoked"
    assert batch.table["control"].to_list() == [True, False, False]


def test_offers_may_be_records() -> None:
    offers = [[{"price": 1, "genre": "a"}, {"price": 2, "genre": "b"}], [{"price": 3, "genre": "a"}]]
    [batch] = lc.read_log(tidy(offers)).batches(0)
    assert list(batch.offers()) == offers
    with pytest.raises(InputError, match="records: encode them first"):
        _ = batch.features


def test_a_flag_of_conversion_closes_every_round() -> None:
    table = pl.DataFrame({"ts": [1, 2, 3], "item": ["a", "b", "a"], "p": [0.5] * 3, "click": [0, 1, 0]})
    log = lc.read_log(table, decided_at="ts", action="item", propensity="p", converted="click")
    assert log.is_closed
    assert log.conversions == 1
    [batch] = log.batches(0)
    assert batch.delay.tolist() == [np.inf, 0.0, np.inf]


def test_a_log_without_propensities_can_be_read() -> None:
    log = lc.read_log(make_table().drop("p"), decided_at="ts", action="item", converted_at="bought")
    assert not log.has_propensities
    assert log.decisions == 500


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        lc.read_log(tmp_path / "absent.csv")
    with pytest.raises(FileError, match="missing: action; it has ts, item"):
        lc.read_log(make_table(), decided_at="ts", converted_at="bought")
    with pytest.raises(FileError, match="missing: weight"):
        lc.read_log(make_table(), **(NAMES | {"propensity": "weight"}))
    with pytest.raises(InputError, match="the ids of all items, each once"):
        lc.read_log(make_table(), actions=["a", "a"], **NAMES)
    with pytest.raises(FileError, match="write the log as Parquet"):
        lc.read_log(tidy([[[1.0]]]).with_columns(actions=pl.lit("[[1.0]]")))
