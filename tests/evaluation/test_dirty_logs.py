"""Dirty logs of decisions: each kind is counted under its reason and skipped, or refused where strict."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from decision_logs import START, tidy

import latecomer as lc
from latecomer.errors import FileError

CLEAN = [f"d{i},{START + i},{'ab'[i % 2]},0.5,{START + i + 60 if i % 3 else ''},2.5" for i in range(90)]
HEADER = "decision_id,decided_at,action,propensity,converted_at,value"
DIRTY = {
    "no decision time": [f"x1,,a,0.5,{START},1"],
    "unreadable decision time": ["x1,soon,a,0.5,,1", "x2,2026-13-01,a,0.5,,1"],
    "unreadable conversion time": [f"x1,{START},a,0.5,yesterday,1"],
    "decision time out of range": [f"x1,{START}000,a,0.5,,1"],
    "conversion time out of range": [f"x1,{START},a,0.5,{START}000,1"],
    "conversion before decision": [f"x1,{START},a,0.5,{START - 10},1"],
    "no action": [f"x1,{START},,0.5,,1", f"x2,{START},NaN,0.5,,1"],
    "no propensity": [f"x1,{START},a,,,1"],
    "propensity out of range": [
        f"x{i},{START},a,{p},,1" for i, p in enumerate(["0", "-0.1", "1.5", "often", "inf", "0.5%"])
    ],
    "conversion without a value": [f"x1,{START},a,0.5,{START + 1},"],
    "value out of range": [f"x{i},{START},a,0.5,{START + 1},{v}" for i, v in enumerate(["-1", "inf", "free"])],
    "duplicate decision id": [f"d3,{START},a,0.5,,1", f"d3,{START},a,0.5,,1"],
}
COLUMNS: dict[str, Any] = {"value": "value", "decision_id": "decision_id"}


def write(path: Path, rows: list[str], encoding: str = "utf-8") -> Path:
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding=encoding)
    return path


def rows_of(log: lc.DecisionLog) -> Any:
    return pl.concat([batch.table for part in range(len(log.parts)) for batch in log.batches(part)]).drop("row")


@pytest.mark.parametrize("reason", DIRTY)
def test_each_kind_of_dirt_is_counted_and_skipped(reason: str, tmp_path: Path) -> None:
    clean = lc.read_log(write(tmp_path / "clean.csv", CLEAN), **COLUMNS)
    path = write(tmp_path / "dirty.csv", [*CLEAN[:40], *DIRTY[reason], *CLEAN[40:]])
    log = lc.read_log(path, **COLUMNS)
    assert log.skipped == {reason: len(DIRTY[reason])}
    assert (log.decisions, log.counts.rows) == (90, 90 + len(DIRTY[reason]))
    assert rows_of(log).equals(rows_of(clean))
    with pytest.raises(FileError, match=f"no dirty row where reading is strict.*{len(DIRTY[reason])} × {reason}"):
        lc.read_log(path, strict=True, **COLUMNS)


def test_every_reason_at_once(tmp_path: Path) -> None:
    dirty = [re.sub("^x", f"{number}-", row) for number, rows in enumerate(DIRTY.values()) for row in rows]
    log = lc.read_log(write(tmp_path / "log.csv", [*CLEAN, *dirty]), **COLUMNS)
    assert log.skipped == {reason: len(rows) for reason, rows in DIRTY.items()}
    assert log.counts.used == 90


def test_a_strict_refusal_names_the_first_rows_and_the_remedy(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", [*CLEAN, *DIRTY["propensity out of range"]])
    with pytest.raises(FileError, match=r"row 91 \(decided_at '1700000000'.*a probability above 0 and at most 1"):
        lc.read_log(path, strict=True, **COLUMNS)


def test_ids_that_come_twice_in_two_files_are_found(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", CLEAN[:50])
    write(tmp_path / "b.csv", CLEAN[45:])
    log = lc.read_log(tmp_path, **COLUMNS)
    assert log.skipped == {"duplicate decision id": 5}
    assert rows_of(log).equals(rows_of(lc.read_log(write(tmp_path / "all.csv", CLEAN), **COLUMNS)))


def test_item_ids_of_another_encoding_are_not_mixed_up(tmp_path: Path) -> None:
    """Two ids of Latin-1 would both become the same text with a replacement character."""
    rows = [*CLEAN, f"x1,{START},thé,0.5,,1", f"x2,{START},thè,0.5,,1"]
    log = lc.read_log(write(tmp_path / "log.csv", rows, encoding="latin-1"), **COLUMNS)
    assert log.skipped == {"action is not UTF-8": 2}
    assert "save the log as UTF-8" in log.counts.remedy
    assert lc.read_log(write(tmp_path / "utf8.csv", rows), **COLUMNS).items == ("a", "b", "thè", "thé")


@pytest.mark.parametrize(
    ("reason", "columns"),
    [
        ("no actions offered", {"actions": [[[1.0]], []]}),
        ("no actions offered", {"actions": [[[1.0]], None]}),
        ("ragged actions", {"actions": [[[1.0]], [[1.0], [1.0, 2.0]]]}),
        ("ragged actions", {"actions": [[[1.0]], [[1.0], None]]}),
        ("feature not finite", {"actions": [[[1.0]], [[float("nan")]]]}),
        ("unknown action", {"chosen": [0, 1]}),
        ("unknown action", {"chosen": [0, -1]}),
        ("no action", {"chosen": [0, None]}),
        ("propensity out of range", {"propensity": [0.5, float("nan")]}),
        ("no propensity", {"propensity": [0.5, None]}),
    ],
)
def test_dirt_of_the_services_table(reason: str, columns: dict[str, Any]) -> None:
    log = lc.read_log(tidy([[[1.0]], [[2.0]]], **columns))
    assert log.skipped == {reason: 1}
    [batch] = log.batches(0)
    assert batch.rows.tolist() == [1]


def test_files_that_hold_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("")
    with pytest.raises(FileError, match="is empty"):
        lc.read_log(path)
    with pytest.raises(FileError, match="must hold decisions; it has no row"):
        lc.read_log(write(path, []))
    with pytest.raises(FileError, match=r"rows that can be used; 6 of 6 rows skipped: 6 × propensity out of range"):
        lc.read_log(write(path, DIRTY["propensity out of range"]))
    path.write_text(HEADER + "\n", encoding="utf-16")
    with pytest.raises(FileError, match="is in UTF-16: save it as UTF-8"):
        lc.read_log(path)
    path.write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(FileError, match="neither Parquet nor CSV"):
        lc.read_log(path)


def test_a_parquet_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    tidy([[[float(i)]] for i in range(1000)]).write_parquet(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(FileError, match=r"neither Parquet nor CSV|is damaged"):
        lc.read_log(path)


def test_milliseconds_are_named(tmp_path: Path) -> None:
    rows = [f"d{i},{START + i}000,a,0.5,,1" for i in range(20)]
    with pytest.raises(FileError, match="looks like milliseconds, divide milliseconds by 1000"):
        lc.read_log(write(tmp_path / "log.csv", rows))


def test_weights_of_dirty_rows_leave_no_trace() -> None:
    """A NaN among the propensities of skipped rows must not reach an array."""
    log = lc.read_log(tidy([[[1.0]]] * 4, propensity=[0.5, float("nan"), 0.0, 1.0]))
    [batch] = log.batches(0)
    assert np.isfinite(batch.propensity).all()
