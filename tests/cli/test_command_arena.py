"""`latecomer arena`: files that grow world by world, and what Ctrl-C leaves."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

import latecomer as lc
from latecomer.cli import rivals
from latecomer.cli.arena import _show
from latecomer.cli.main import app
from latecomer.experiments.arena import arena, comparison, random_worlds
from latecomer.experiments.arena import worlds as arena_worlds
from latecomer.experiments.arena.floor import KNOWN, UNDELAYED
from latecomer.experiments.arena.rivals.table import RIVALS
from latecomer.experiments.arena.worlds import ArenaWorld
from latecomer.experiments.paper.experiments import UNIFORM

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("empty_pictures")


def small(name: str) -> ArenaWorld:
    world = lc.World(theta=[0.3, 0.8], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=5))
    return ArenaWorld(name, "contexts", world, horizon=40, window=8)


@pytest.fixture
def worlds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two small worlds in place of the large ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(arena_worlds, "load_worlds", lambda: {name: small(name) for name in ("first", "second")})
    return ["first", "second"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["arena", *map(str, arguments)])


@pytest.mark.parametrize("name", ["first", pytest.param("20 fixed random arms", marks=pytest.mark.soak)])
def test_arena_writes_the_files_of_one_world(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """One of the small worlds, which are played as plain Python; in the soak one of the arena's."""
    if name == "first":
        request.getfixturevalue("worlds")
    monkeypatch.setenv("COLUMNS", "160")
    chosen = ["--world", name, "--policy", "MaturedLinTS", "--policy", UNIFORM]
    ended = run("--runs", 2, *chosen, "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.output
    assert ended.stderr == f"1 of 1 worlds: {name}\n"
    table = pl.read_csv(tmp_path / "out" / "arena.csv")
    assert table["policy"].to_list() == ["MaturedLinTS", UNIFORM, KNOWN, UNDELAYED]
    assert table["runs"].to_list() == [2, 2, 2, 2]
    assert table["to_uniform"].to_list()[1] == 1.0
    assert table["to_best_published"].is_nan().all()  # none was played
    assert (tmp_path / "out" / "arena.png").read_bytes().startswith(b"\x89PNG")
    assert name in ended.stdout
    assert "uniform play" in ended.stdout


def test_the_same_seed_writes_the_same_bytes_in_every_world(worlds: list[str], tmp_path: Path) -> None:
    for out in ("one", "two"):
        ended = run("--runs", 2, "--policy", "Greedy", "--policy", "MaturedLinTS", "--out", out, "--jobs", 2)
        assert ended.exit_code == 0, ended.output
        assert ended.stderr == "1 of 2 worlds: first\n2 of 2 worlds: second\n"
        assert ended.stdout.endswith(f"wrote {out}/arena.csv, {out}/arena.png, {out}/arena.svg\n")
    assert pl.read_csv(tmp_path / "one" / "arena.csv")["world"].unique(maintain_order=True).to_list() == worlds
    assert (tmp_path / "one" / "arena.csv").read_bytes() == (tmp_path / "two" / "arena.csv").read_bytes()


def test_the_table_is_readable_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every policy on one line, its name and figures whole, though the largest regrets have five digits."""
    monkeypatch.setenv("COLUMNS", "80")
    finals = {name: np.array([12345.0, 23457.0]) for name in (*arena.POLICIES, KNOWN, UNDELAYED)}
    _show([arena.score_table(small("heavy tail, m = 10000"), finals)])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for name in finals:
        (line,) = (line for line in lines if line.strip().startswith(f"{name} ") and "17901.0" in line)
        assert line.split()[-7:] == ["17901.0", "5556.0", "22901.4", "1.00", "1.00", "1.00", "1.00"]


def test_ratios_to_policies_that_were_not_run_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    _show([arena.score_table(small("first"), {"Greedy": np.array([1.0, 2.0]), UNDELAYED: np.array([2.0, 2.0])})])
    shown = capsys.readouterr().out
    assert "nan" not in shown
    assert "of best" not in shown
    assert "0.75" in shown


def test_help_lists_the_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("--help").stdout
    assert re.findall(r'^ +"(.+?)"', shown, re.MULTILINE) == list(arena_worlds.load_worlds())
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "1"], "--runs"),
        (["--seed", "-1"], "--seed"),
        (["--jobs", "0"], "--jobs"),
        (["--world", "nowhere"], "world must be one of 'first', 'second'; got 'nowhere'"),
        (["--policy", "nobody"], "policy must be one of 'recommended', "),
        (["--engine", "dask"], "--engine dask needs the scheduler's address"),
    ],
)
@pytest.mark.usefixtures("worlds")
def test_bad_options_are_refused(arguments: list[str], message: str) -> None:
    ended = run(*arguments)
    assert ended.exit_code == 2
    assert message in ended.stderr


@pytest.mark.usefixtures("worlds")
def test_out_must_be_writable_before_the_work_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "run_world", lambda *_, **__: pytest.fail("played"))
    (tmp_path / "file").touch()
    ended = run("--out", "file")
    assert ended.exit_code == 2
    assert ended.stderr.startswith("--out must be a folder that can be written; got 'file'")


@pytest.mark.usefixtures("worlds")
def test_an_interrupt_before_the_first_world_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(arena, "run_world", interrupted)
    ended = run("--out", "out")
    assert ended.exit_code == 130
    assert ended.stderr == "interrupted: no world was done; nothing is written\n"
    assert not (tmp_path / "out").exists()


def test_random_worlds_have_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name, value in {"HORIZONS": (50,), "LEAST_CONVERSIONS": 1.0, "DIMS": (2,), "COUNTS": (2,)}.items():
        monkeypatch.setattr(random_worlds, name, value)
    chosen = ["--policy", "MaturedLinTS", "--policy", "OTFLinUCB, as released", "--policy", UNIFORM]
    ended = run("--random", 2, "--seed", 3, "--runs", 2, *chosen, "--out", tmp_path)
    assert ended.exit_code == 0, ended.output
    assert ended.stderr.startswith("1 of 2 worlds: random 000: d = ")
    assert "2 random worlds" in ended.stdout
    assert max(map(len, ended.stdout.splitlines()[:8])) <= 80
    summary = pl.read_csv(tmp_path / "summary.csv")
    assert set(summary["policy"]) == {"MaturedLinTS", "OTFLinUCB, as released", UNIFORM, KNOWN, UNDELAYED}
    assert set(summary["worlds"]) == {2}
    assert [path.name for path in sorted((tmp_path / "worlds").iterdir())] == ["random-000.json", "random-001.json"]
    assert (tmp_path / "arena.png").read_bytes().startswith(b"\x89PNG")
    refused = run("--random", 2, "--world", "B (100, 100)")
    assert refused.exit_code == 2
    assert "--random draws its own worlds" in refused.stderr


@pytest.mark.usefixtures("worlds")
def test_rivals_are_compared_by_regret_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "find_peers", lambda *, fixed_arms: [])
    monkeypatch.setattr(comparison, "OURS", ("recommended", "OTFLinUCB, as released", UNIFORM))
    monkeypatch.setattr(rivals, "SLOW_RUNS", 2)
    ended = run("--rivals", "--world", "first", "--runs", 3, "--out", "out")
    assert ended.exit_code == 0, ended.output
    table = pl.read_csv(tmp_path / "out" / "rivals.csv")
    runs = dict(table.select("policy", "runs").iter_rows())
    assert {name for name, count in runs.items() if count == 2} == set(RIVALS)  # slow ones have fewer, and say so
    assert runs["recommended"] == runs[UNDELAYED] == 3
    times = dict(table.select("policy", "microseconds").iter_rows())
    assert all(times[name] > 0.0 for name in ("recommended", *RIVALS))
    assert times[UNDELAYED] is None
    assert (tmp_path / "out" / "rivals.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "rivals.svg").read_text(encoding="utf-8").startswith("<?xml")
    refused = run("--rivals", "--policy", "Greedy")
    assert (refused.exit_code, "--rivals has its own policies" in refused.stderr) == (2, True)


@pytest.mark.usefixtures("worlds", "signals_that_arrive")
def test_a_second_run_plays_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first world is on disk, and Ctrl-C comes in the second; then the same command plays the second alone."""
    played: list[list[str]] = []
    simulate = lc.simulate

    def count(world: object, policies: dict[str, object], **how: object) -> object:
        played.append(list(policies))
        if len(played) == 3:
            signal.raise_signal(signal.SIGINT)
        return simulate(world, policies, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(arena, "simulate", count)
    command = ("--runs", 2, "--policy", "Greedy", "--out", "out")
    interrupted = run(*command)
    assert interrupted.exit_code == 130
    assert interrupted.stderr.endswith("interrupted: 1 of 2 worlds were done, and are written\n")
    assert pl.read_csv(tmp_path / "out" / "arena.csv")["world"].unique().to_list() == ["first"]
    assert run(*command).exit_code == 0
    whole = [["Greedy", KNOWN], [UNDELAYED]]
    assert played == [*whole, whole[0], *whole]
    monkeypatch.setattr(arena, "simulate", simulate)
    assert run("--runs", 2, "--policy", "Greedy", "--out", "whole").exit_code == 0
    assert (tmp_path / "out" / "arena.csv").read_bytes() == (tmp_path / "whole" / "arena.csv").read_bytes()
    other = run("--runs", 3, "--policy", "Greedy", "--out", "out")
    assert other.exit_code == 2
    assert "holds results of runs 2, where this is 3: give another --out, or remove the file" in other.stderr


IN_SMALL_WORLDS = """
import logging, latecomer as lc
from latecomer.__main__ import main
from latecomer.experiments.arena import worlds
world = lc.World(theta=[0.3, 0.8], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=5))
horizons = {"first": 2, "second": 300}
both = {name: worlds.ArenaWorld(name, "contexts", world, rounds, 8) for name, rounds in horizons.items()}
worlds.load_worlds = lambda: both
logging.getLogger("latecomer").setLevel("ERROR")  # that LATECOMER_COMPILE is never
main()
"""
INTERRUPTED = [
    (["-c", IN_SMALL_WORLDS], "first", "second"),  # two rounds, and 300, as plain Python
    (["-m", "latecomer"], "20 fixed random arms", "heavy tail, m = 10000"),
]


@pytest.mark.soak
@pytest.mark.usefixtures("signals_that_arrive")
@pytest.mark.parametrize(("code", "first", "second"), INTERRUPTED, ids=["small worlds", "worlds of the arena"])
def test_ctrl_c_keeps_the_finished_worlds(code: list[str], first: str, second: str, tmp_path: Path) -> None:
    """In a real process: the first world is done, and the second is under way for as long as it takes to hear."""
    chosen = ["--world", first, "--world", second, "--policy", UNIFORM]
    command = [sys.executable, *code, "arena", "--runs", "100", "--out", "out", *chosen]
    environment = {**os.environ, "LATECOMER_COMPILE": "never"} if first == "first" else None
    with subprocess.Popen(  # noqa: S603
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == f"1 of 2 worlds: {first}\n"
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors == "interrupted: 1 of 2 worlds were done, and are written\n"
    assert "wrote out/arena.csv, out/arena.png, out/arena.svg" in output
    table = pl.read_csv(tmp_path / "out" / "arena.csv")
    assert table["world"].unique().to_list() == [first]
    assert set(table["runs"]) == {100}


def test_every_option_is_documented() -> None:
    page = (ROOT / "docs/reference/command-line.md").read_text()
    section = page.split("## latecomer arena")[1].split("\n## ")[0] if "## latecomer arena" in page else ""
    options = set(re.findall(r"--[a-z]+", run("--help").stdout)) - {"--help"}
    assert {option for option in options if option not in section} == set()
