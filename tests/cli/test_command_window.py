"""`latecomer window`, from the log to the files."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner, Result

import latecomer as lc
from latecomer.cli.main import app

ROOT = Path(__file__).parents[2]
FILES = ["advice.json", "curve.csv", "window.png", "window.svg", "windows.csv", "windows.parquet"]
QUICK = ["--dim", "5", "--rounds", "10", "--runs", "2"]
"""So few rounds that nothing is compiled."""

pytestmark = pytest.mark.usefixtures("empty_pictures")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    decided = rng.uniform(0.0, 300_000.0, 5000)
    converted = decided + rng.exponential(5000.0, 5000)
    seen = (rng.random(5000) < 0.3) & (converted < 300_000.0)
    table = pl.DataFrame(
        {"decided_at": decided, "converted_at": pl.Series(np.where(seen, converted, np.nan)).fill_nan(None)}
    )
    table.write_csv("log.csv")
    return Path("log.csv")


def window(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["window", *map(str, arguments)])


def run_in_a_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latecomer", "window", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603


@pytest.mark.parametrize("run", [window, pytest.param(run_in_a_process, marks=pytest.mark.soak)])
def test_window_reads_a_log(run: Callable[..., Any], log: Path, tmp_path: Path) -> None:
    ended = run(log, *QUICK)
    assert ended.stderr == ""
    folder = tmp_path / "window-result"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert (folder / "window.png").read_bytes().startswith(b"\x89PNG")

    direct = lc.advise_window(log, dim=5, rounds=10, runs=2)
    assert_frame_equal(pl.read_parquet(folder / "windows.parquet"), direct.table, check_exact=True)
    assert_frame_equal(pl.read_csv(folder / "windows.csv"), direct.table)
    assert_frame_equal(pl.read_csv(folder / "curve.csv"), direct.curve)
    assert json.loads((folder / "advice.json").read_text()) == json.loads(json.dumps(direct.to_dict()))
    shown = " ".join(ended.stdout.split())
    assert f"Recommended: {direct.to_dict()['recommended']} " in shown
    assert direct.finding in shown
    assert direct.reason in shown
    assert all(note in shown for note in direct.notes)


def test_the_table_has_a_row_for_each_window(log: Path) -> None:
    ended = window(log, *QUICK, "--out", "advice")
    rows = [re.split(r"\s*[│┃]\s*", line)[1:-1] for line in ended.stdout.splitlines() if line[:1] in "│┃"]
    assert rows[0] == ["window", "keeps", "90 % band", "regret", "excess", "cost", "memory"]
    table = pl.read_csv("advice/windows.csv")
    assert [row[0] for row in rows[1:]] == table["window"].to_list()
    assert [row[1] for row in rows[1:]] == [f"{share:.1%}" for share in table["share"]]
    assert [row[5] for row in rows[1:]] == table["cost"].to_list()
    assert max(map(len, ended.stdout.split("wrote")[0].splitlines())) <= 80
    assert "…" not in ended.stdout


def test_dirty_rows_are_counted_and_skipped(log: Path) -> None:
    clean = log.read_text().splitlines()
    log.write_text("\n".join([*clean[:40], "2018-03-08,2018-03-06T19:38:00", *clean[40:], "soon,"]))
    ended = window(log, *QUICK)
    assert ended.exit_code == 0, ended.output
    message = "2 of 5,002 rows skipped: 1 × unreadable decision time, 1 × conversion before decision;"
    assert message in " ".join(ended.stdout.split())
    advice = json.loads(Path("window-result/advice.json").read_text())
    assert advice["skipped"] == {"unreadable decision time": 1, "conversion before decision": 1}
    assert advice["facts"]["rows"] == 5002
    strict = window(log, *QUICK, "--strict", "--out", "strict")
    assert strict.exit_code == 2
    assert "row 40 (decided_at '2018-03-08', converted_at '2018-03-06T19:38:00'); row 5,002 (" in strict.stderr
    assert "(on the command line, leave out --strict) to skip them" in strict.stderr
    assert not Path("strict").exists()


def test_a_warning_about_skipped_rows_is_the_first_line(log: Path) -> None:
    never = "\n".join(f"{second}.5,-1" for second in range(6000))
    log.write_text(f"{log.read_text()}{never}\n")
    ended = window(log, *QUICK)
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.startswith("WARNING: 6,000 of 11,000 rows were skipped, more than half")
    assert json.loads(Path("window-result/advice.json").read_text())["warning"].startswith("WARNING: 6,000 of 11,000")


def test_window_takes_a_law_and_a_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = window("--law", 'law = "geometric", mean = 30', "--unit", 60, "--rate", 100, "--days", 10, *QUICK)
    assert ended.exit_code == 0, ended.output
    share = dict(pl.read_csv("window-result/windows.csv").select("window", "share").iter_rows())
    law = lc.delays.Geometric(30)
    assert share["4 h"] == 1.0
    assert share["1 h"] == pytest.approx(law.cdf(60) / law.cdf(240))
    assert " to " not in ended.stdout.split("Recommended")[0], "a law has no band"


def test_until_takes_seconds_or_iso_8601(log: Path) -> None:
    for until in ("250000", "1970-01-03T21:26:40Z"):
        assert window(log, *QUICK, "--until", until, "--out", f"at-{until[:4]}").exit_code == 0
    assert Path("at-2500/curve.csv").read_bytes() == Path("at-1970/curve.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ([], "window needs a log, or --law with --rate: one of the two", 2),
        (["log.csv", "--law", 'law = "fixed", delay = 3'], "one of the two", 2),
        (["none.csv"], "none.csv cannot be read: No such file or directory; check the path", 2),
        (["--law", 'law = "fixed", delay = 3'], "rate must be given with a law, in decisions an hour", 2),
        (["--law", 'law = "fixd"', "--rate", "3"], "--law.law must be one of .*did you mean 'fixed'", 2),
        (["--law", "fixed", "--rate", "3"], "--law must be a table such as", 2),
        (["log.csv", "--until", "soon"], "--until must be seconds, or ISO 8601 such as", 2),
        (["log.csv", "--days", "0"], "--days must be above 0", 2),
        (["log.csv", "--until", "3"], "log.csv must hold at least 30 conversions up to the end of watching", 2),
        (["bad.csv"], "bad.csv must have the columns decided_at, converted_at; missing: converted_at", 2),
        (["empty.csv"], "empty.csv is empty: it must have the columns decided_at, converted_at", 2),
    ],
)
def test_bad_options_of_window_are_refused(log: Path, arguments: list[str], message: str, code: int) -> None:
    Path("bad.csv").write_text("decided_at\n3\n")
    Path("empty.csv").touch()
    ended = window(*arguments)
    assert ended.exit_code == code
    assert re.search(message, ended.stderr)
    assert ended.stderr.count("\n") == 1


def test_every_option_and_column_is_documented() -> None:
    pages = "".join((ROOT / "docs" / name).read_text() for name in ("reference/command-line.md", "how-to/window.md"))
    options = set(re.findall(r"--[a-z-]+", window("--help").stdout)) - {"--help"}
    columns = set(lc.advise_window(lc.delays.Fixed(60), rate=60, dim=2, rounds=100, runs=2).table.columns)
    assert {word for word in {*options, *(f"`{column}`" for column in columns)} if word not in pages} == set()
