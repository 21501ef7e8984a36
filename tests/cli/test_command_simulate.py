"""`latecomer simulate`, from the file to the files."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from commands import run_command
from polars.testing import assert_frame_equal
from typer.testing import CliRunner, Result

import latecomer as lc
from latecomer.cli.main import app
from latecomer.cli.output import replace_output
from latecomer.errors import InputError, LatecomerError
from latecomer.experiments import experiment_file

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "simulate.toml"
FILES = ["regret.parquet", "regret.png", "regret.svg", "summary.csv"]

pytestmark = pytest.mark.usefixtures("empty_pictures")

SMALL = """
horizon = 60
runs = 3
seed = 7
[world]
theta = { dim = 5, value = "uniform" }
actions = { law = "binary", count = 4 }
delays = { law = "geometric", mean = 5 }
[policies."a [bold] name"]
policy = "OTFLinUCB"
window = 10
[policies.any]
policy = "Uniform"
window = 10
"""


def test_simulate_says_that_it_compiles(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(
        SMALL.replace("horizon = 60", "horizon = 2000")
        .replace("dim = 5", "dim = 2")
        .replace('"OTFLinUCB"', '"Uniform"')
    )
    done = run_command(
        "simulate", "two.toml", "--runs", "1", folder=tmp_path,
        LATECOMER_COMPILE="auto", LATECOMER_CACHE_DIR=str(tmp_path / "cold"),
    )  # fmt: skip
    assert done.stderr == "compiling Uniform for d = 2 meanwhile; until then it runs as Python\n"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def simulate(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run_in_a_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latecomer", "simulate", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603


@pytest.mark.parametrize(
    ("run", "horizon"), [(simulate, 40), pytest.param(run_in_a_process, 2000, marks=pytest.mark.soak)]
)
def test_the_example_gives_the_numbers_of_the_library(
    run: Callable[..., Any], horizon: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the example with fewer rounds, for which nothing is compiled; in the soak with its own."""
    monkeypatch.chdir(tmp_path)
    example = EXAMPLE.read_text()
    assert example.count("horizon = 2000 ") == 1
    (tmp_path / "simulate.toml").write_text(example.replace("horizon = 2000 ", f"horizon = {horizon} "))
    ended = run("simulate.toml", "--runs", 2)
    folder = tmp_path / "simulate-result"
    assert names(folder) == FILES
    assert ended.stderr == ""
    assert f"Pseudo-regret at round {horizon}, runs = 2, seed = 0" in ended.stdout
    assert "recommended, short window" in ended.stdout
    assert (folder / "regret.png").read_bytes().startswith(b"\x89PNG")

    delays = lc.delays.Mixture(
        [lc.delays.Geometric(20), lc.delays.LogNormal(300, 1.0), lc.delays.Never()], weights=[0.6, 0.3, 0.1]
    )
    world = lc.World(theta=np.full(5, 5**-0.5), actions=lc.actions.Uniform(10), delays=delays)
    policies = {
        "recommended": lc.recommended(5, 200),
        "recommended, short window": lc.recommended(5, 20),
        "OTFLinUCB, scaled": lc.OTFLinUCB(5, 200, exploration=0.1),
        "OTFLinTS": lc.OTFLinTS(5, 200),
        "LinUCB, scaled": lc.LinUCB(5, 200, exploration=0.1),
        "random": lc.Uniform(5, 200),
    }
    direct = lc.simulate(world, policies, horizon=horizon, runs=2, seed=0)
    assert_frame_equal(pl.read_parquet(folder / "regret.parquet"), direct.to_frame(), check_exact=True)
    assert_frame_equal(pl.read_csv(folder / "summary.csv"), direct.regret_by_round())


@pytest.mark.parametrize(
    ("names", "runs"),
    [
        (("recommended", "random"), 10),  # for which other tests compile
        pytest.param(("recommended", "LinUCB, scaled", "random"), 50, marks=pytest.mark.soak),
    ],
)
def test_recommended_is_no_worse_than_linucb_and_uniform_in_the_example(names: tuple[str, ...], runs: int) -> None:
    described = experiment_file.read_experiment(EXAMPLE)
    assert runs <= described.runs
    policies, seed = {name: described.policies[name] for name in names}, described.seed
    result = lc.simulate(described.world, policies, horizon=described.horizon, runs=runs, seed=seed, progress=False)
    means = [result.final(name).mean() for name in names]
    assert means == sorted(means)


def test_options_override_the_experiment_file(small: Path, tmp_path: Path) -> None:
    assert simulate(small).exit_code == 0
    by_file = pl.read_parquet(tmp_path / "small-result" / "regret.parquet")
    described = experiment_file.read_experiment(small)
    expected = lc.simulate(described.world, described.policies, horizon=60, runs=3, seed=7)
    assert_frame_equal(by_file, expected.to_frame(), check_exact=True)

    assert simulate(small, "--runs", 2, "--seed", 0, "--jobs", 1, "--out", "deep/er").exit_code == 0
    by_command = pl.read_parquet(tmp_path / "deep" / "er" / "regret.parquet")
    expected = lc.simulate(described.world, described.policies, horizon=60, runs=2, seed=0)
    assert_frame_equal(by_command, expected.to_frame(), check_exact=True)


def test_the_table_has_the_regret_at_the_horizon(small: Path) -> None:
    ended = simulate(small)
    rows = [re.split(r"\s*[│┃]\s*", line)[1:-1] for line in ended.stdout.splitlines() if line[:1] in "│┃"]
    assert rows[0] == ["policy", "mean", "standard error", "5 %", "95 %"]
    assert [row[0] for row in rows[1:]] == ["a [bold] name", "any"]
    described = experiment_file.read_experiment(small)
    result = lc.simulate(described.world, described.policies, horizon=60, runs=3, seed=7)
    final = result.final("any")
    low, high = np.quantile(final, [0.05, 0.95])
    expected = [final.mean(), final.std(ddof=1) / np.sqrt(3), low, high]
    assert rows[2][1:] == [f"{value:.2f}" for value in expected]
    assert ended.stdout.endswith("small-result/regret.svg\n")


def test_a_single_run_has_no_standard_error(small: Path) -> None:
    ended = simulate(small, "--runs", 1)
    assert ended.exit_code == 0
    assert re.search(r"│ any +│ +[\d.]+ │ +- │", ended.stdout), ended.stdout


def test_earlier_results_are_replaced(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "small-result"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text("old")
    assert simulate(small).exit_code == 0
    assert names(folder) == FILES
    assert all((folder / name).read_bytes() != b"old" for name in FILES)


def test_an_error_in_the_file_is_one_line(small: Path, tmp_path: Path) -> None:
    small.write_text(SMALL.replace("count = 4", "count = 0"))
    ended = simulate("small.toml")
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert ended.stderr == "small.toml: world.actions.count must be at least 1 and below 2^62; got 0\n"
    assert names(tmp_path) == ["small.toml"], "nothing is made for a file that is refused"


def test_an_error_in_a_real_process_has_no_traceback(small: Path) -> None:
    small.write_text(SMALL.replace('"OTFLinUCB"\nwindow = 10', '"OTFLinUCB"\nwindow = "7d"'))
    command = [sys.executable, "-m", "latecomer", "simulate", "small.toml"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    assert ended.returncode == 2
    assert ended.stderr.startswith('small.toml: policies."a [bold] name".window must be a whole number of rounds')
    assert ended.stderr.count("\n") == 1


def test_an_error_during_the_simulation_is_one_line(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise InputError("every mean reward must be in [0, 1]; one is not")

    monkeypatch.setattr("latecomer.simulation.simulate.simulate", broken)
    ended = simulate(small)
    assert ended.exit_code == 2
    assert ended.stderr == "every mean reward must be in [0, 1]; one is not\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "0"], "--runs"),
        (["--seed", "-1"], "--seed"),
        (["--jobs", "x"], "--jobs"),
        (["--engine", "dsk"], "--engine must be one of 'threads', 'dask'; got 'dsk'"),
        (["--engine", "dask"], "--engine dask needs the scheduler's address"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler is for --engine dask"),
    ],
)
def test_bad_options_are_refused(small: Path, arguments: list[str], message: str) -> None:
    ended = simulate(small, *arguments)
    assert ended.exit_code == 2
    assert message in ended.stderr


@pytest.mark.parametrize("out", ["small.toml", "small.toml/below"])
def test_out_is_checked_before_anything_is_simulated(small: Path, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latecomer.simulation.simulate.simulate", lambda *_, **__: pytest.fail("played"))
    ended = simulate(small, "--out", out)
    assert ended.exit_code == 2
    assert re.fullmatch(
        rf"--out must be a folder that can be written; got '{out}' \(.+\): choose another\n", ended.stderr
    )


def test_a_full_disk_is_an_error_that_names_the_file(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    ended = simulate(small)
    assert ended.exit_code == 1
    assert ended.stderr == "small-result/regret.parquet could not be written: No space left on device\n"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(LatecomerError), replace_output(path) as part:  # noqa: PT012
        part.write_text("ne")
        raise OSError("the disk is gone")
    assert path.read_text() == "old"
    with replace_output(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file"]


def test_every_option_and_name_is_documented() -> None:
    page = (ROOT / "docs/reference/command-line.md").read_text()
    options = set(re.findall(r"--[a-z]+", simulate("--help").stdout)) - {"--help"}
    laws = {f'"{name}"' for name in (*experiment_file.ACTIONS, *experiment_file.DELAYS)}
    assert {word for word in {*options, *laws, *experiment_file.POLICIES} if word not in page} == set()
