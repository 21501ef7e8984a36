"""`latecomer evaluate`, from the log to the files."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from decision_logs import make_log, read
from polars.testing import assert_frame_equal
from typer.testing import CliRunner, Result

import latecomer as lc
from latecomer.cli.main import app

FILES = [f"evaluation.{kind}" for kind in ("csv", "json", "parquet", "png", "svg", "txt")]

pytestmark = pytest.mark.usefixtures("empty_pictures")
NAMES = ["--decided-at", "ts", "--action", "item", "--propensity", "p", "--converted-at", "bought"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_log(5000).with_columns(planned=pl.lit("c")).write_csv("log.csv")
    return Path("log.csv")


def evaluate(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def run_in_a_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latecomer", "evaluate", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603


@pytest.mark.parametrize("run", [evaluate, pytest.param(run_in_a_process, marks=pytest.mark.soak)])
def test_evaluate_reads_a_log(run: Callable[..., Any], log: Path, tmp_path: Path) -> None:
    options = ["--window", "2d", "--policy", "uniform", "--policy", "new=planned", "--value", "25", "--currency", "EUR"]
    ended = run(log, *NAMES, *options)
    assert ended.stderr == ""
    folder = tmp_path / "evaluation-result"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert (folder / "evaluation.png").read_bytes().startswith(b"\x89PNG")
    direct = lc.evaluate(
        read(log), {"uniform": "uniform", "new": "planned"}, window="2d", value=25.0, currency="EUR", progress=False
    )
    assert_frame_equal(pl.read_parquet(folder / "evaluation.parquet"), direct.details, check_exact=True)
    assert_frame_equal(pl.read_csv(folder / "evaluation.csv"), direct.table)
    assert json.loads((folder / "evaluation.json").read_text()) == json.loads(direct.to_json()) | {"log": "log.csv"}
    assert ended.stdout.startswith(direct.text())


def test_evaluate_takes_the_items_where_no_policy_is_named(log: Path) -> None:
    ended = evaluate(log, *NAMES, "--window", "2d", "--estimator", "snips, dr", "--out", "here")
    assert ended.exit_code == 0, ended.output
    table = pl.read_csv("here/evaluation.csv")
    assert table["policy"].unique(maintain_order=True).to_list() == [
        "logged",
        "uniform",
        *(f"always {i}" for i in "abc"),
    ]
    assert set(table["estimator"]) == {"snips", "dr"}


def test_clicks_need_no_window(log: Path) -> None:
    pl.read_csv(log).with_columns(click=pl.col("bought").is_not_null().cast(pl.Int8)).write_parquet("clicks.parquet")
    ended = evaluate("clicks.parquet", *NAMES[:6], "--converted", "click", "--largest-weight", "10")
    assert ended.exit_code == 0, ended.output
    assert "at every look" in ended.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "window must be given"),
        (["--window", "2x"], "window must be a whole number and one of"),
        (["--window", "2d", "--policy", "a=b", "--policy", "a=c"], "each name once; got 'a' twice"),
        (["--window", "2d", "--policy", "nobody"], "must be 'logged', 'uniform', an item or a column"),
        (["--window", "2d", "--until", "soon"], "--until must be seconds, or ISO 8601"),
        (["--window", "2d", "--engine", "dask"], "needs the scheduler's address"),
        (["--window", "2d", "--propensity", "q"], "missing: q"),
    ],
)
def test_wrong_input_is_one_line_and_code_2(log: Path, options: list[str], words: str) -> None:
    ended = evaluate(log, *NAMES, *options)
    assert ended.exit_code == 2
    assert words in ended.output
    assert len(ended.output.strip().splitlines()) == 1
    assert not Path("evaluation-result").exists()


def test_dirty_rows_are_counted_or_refused(log: Path) -> None:
    with log.open("a") as file:
        file.write("1700000000,a,7.5,,de,c\n")
    assert "Rows skipped: 1 × propensity out of range." in evaluate(log, *NAMES, "--window", "2d").output
    ended = evaluate(log, *NAMES, "--window", "2d", "--strict")
    assert ended.exit_code == 2
    assert "leave out --strict" in ended.output
