"""Ctrl-C, as it comes in life: a signal to a process that has a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

RUNS = 2_000
LIMIT = 120.0
"""Seconds in which a command says something more, or ends."""

LONG = f"""
horizon = 100
runs = {RUNS}
[world]
theta = {{ dim = 5, value = "uniform" }}
actions = {{ law = "binary", count = 10 }}
delays = {{ law = "geometric", mean = 5 }}
[policies.any]
policy = "Uniform"
window = 10
"""


pytestmark = pytest.mark.usefixtures("signals_that_arrive")


def read_on(terminal: int) -> bytes:
    assert select.select([terminal], [], [], LIMIT)[0], "the command says nothing, and does not end"
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


def interrupt(arguments: list[str], folder: Path) -> str:
    """Return the terminal output of a command that gets Ctrl-C after some runs and before most."""
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "latecomer", *arguments]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LATECOMER_COMPILE": "never"}
    with subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=theirs, env=environment) as process:  # noqa: S603
        os.close(theirs)
        seen = b""
        try:
            while not re.search(rb"\b[1-9]\d?%", seen):  # the progress bar: some runs are done, and most are not
                more = read_on(terminal)
                assert more, seen.decode()
                seen += more
            process.send_signal(signal.SIGINT)
            while more := read_on(terminal):
                seen += more
            assert process.wait(60) == 130
        finally:
            process.kill()
    os.close(terminal)
    text = seen.decode()
    assert "Traceback" not in text
    return text


def test_an_interrupted_simulation_keeps_the_finished_runs(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    text = interrupt(["simulate", "long.toml"], tmp_path)
    found = re.search(rf"interrupted: (\d+) of {RUNS} runs were done, and are written", text)
    assert found, text
    frame = pl.read_parquet(tmp_path / "long-result" / "regret.parquet")
    assert 0 < int(found[1]) < RUNS
    assert frame.height == int(found[1]) * 100
    assert sorted(path.name for path in (tmp_path / "long-result").iterdir()) == [
        "regret.parquet",
        "regret.png",
        "regret.svg",
        "summary.csv",
    ]
    assert f"runs = {found[1]}, seed = 0" in text


def interrupt_here(arguments: list[str], folder: Path) -> str:
    """Return the output of a command of this process, which gets Ctrl-C when it begins its tenth run."""
    from typer.testing import CliRunner

    from latecomer.cli.main import app
    from latecomer.experiments.window import runs

    begun: list[Any] = []

    def play_run(*given: Any, **more: Any) -> Any:
        begun.append(more)
        if len(begun) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return play(*given, **more)

    with pytest.MonkeyPatch.context() as patch:
        play: Any = vars(runs)["play_run"]
        patch.setattr(runs, "play_run", play_run)
        patch.setenv("LATECOMER_COMPILE", "never")
        patch.chdir(folder)
        ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 130, ended.output
    return ended.output


@pytest.mark.parametrize("interrupt", [interrupt_here, pytest.param(interrupt, marks=pytest.mark.soak)])
@pytest.mark.usefixtures("empty_pictures")
def test_an_interrupted_window_keeps_the_advice_so_far(interrupt: Callable[..., str], tmp_path: Path) -> None:
    """Twenty-four rounds are so noisy that the choice is not clear after forty runs, and Ctrl-C comes sooner."""
    law = ["--law", 'law = "lognormal", median = 1800, sigma = 1.0', "--unit", "60"]
    command = ["window", *law, "--rate", "1", "--days", "1", "--dim", "2", "--runs", "500"]
    text = interrupt(command, tmp_path)
    found = re.search(r"interrupted: (\d+) runs were done, and their advice is written", text)
    assert found, text
    folder = tmp_path / "window-result"
    advice = json.loads((folder / "advice.json").read_text())
    assert advice["facts"]["runs"] == int(found[1]) < 500
    assert advice["facts"]["is_interrupted"]
    assert f"Interrupted after {int(found[1]):,} of at most 500 runs" in " ".join(advice["notes"])
    assert len(list(folder.iterdir())) == 6


def test_an_interrupt_before_the_first_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from latecomer.cli.main import app

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("latecomer.simulation.simulate.simulate", interrupted)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.toml").write_text(LONG)
    ended = CliRunner().invoke(app, ["simulate", "long.toml"])
    assert ended.exit_code == 130
    assert ended.stderr == f"interrupted: 0 of {RUNS} runs were done; nothing is written\n"
    assert not (tmp_path / "long-result").exists()


def test_sigterm_keeps_the_finished_runs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes when the tenth run begins, in this process."""
    from typer.testing import CliRunner

    from latecomer.cli.main import app
    from latecomer.simulation import simulate

    begun: list[Any] = []

    def trace_run(*given: Any, **more: Any) -> Any:
        begun.append(more)
        if len(begun) == 10:
            os.kill(os.getpid(), signal.SIGTERM)
        return play(*given, **more)

    play: Any = vars(simulate)["trace_run"]
    monkeypatch.setattr(simulate, "trace_run", trace_run)
    monkeypatch.setenv("LATECOMER_COMPILE", "never")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.toml").write_text(LONG)
    handler = signal.getsignal(signal.SIGTERM)
    ended = CliRunner().invoke(app, ["simulate", "long.toml"])
    assert ended.exit_code == 130, ended.output
    assert re.search(rf"interrupted: \d+ of {RUNS} runs were done, and are written", ended.stderr)
    assert (tmp_path / "long-result" / "regret.parquet").exists()
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_failed_command_leaves_no_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from latecomer.cli.main import app

    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["window", "none.csv", "--out", "new/deep"]).exit_code != 0
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old").mkdir()
    assert CliRunner().invoke(app, ["window", "none.csv", "--out", "old"]).exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
