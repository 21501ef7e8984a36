"""Ctrl-C, as it comes in life: a signal to a process that has a terminal."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

RUNS = 20_000

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
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


def test_an_interrupted_run_leaves_what_is_done(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "latecomer", "simulate", "long.toml"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs, env=environment) as process:  # noqa: S603
        os.close(theirs)
        seen = b""
        while not re.search(rb"\b[1-9]\d?%", seen):  # the progress bar: some runs are done, and most are not
            more = read_on(terminal)
            assert more, seen.decode()
            seen += more
        process.send_signal(signal.SIGINT)
        while more := read_on(terminal):
            seen += more
        assert process.wait(60) == 130
    os.close(terminal)
    text = seen.decode()
    told = re.search(rf"interrupted: (\d+) of {RUNS} runs were done, and are written", text)
    assert told, text
    assert "Traceback" not in text
    frame = pl.read_parquet(tmp_path / "long-result" / "regret.parquet")
    assert 0 < int(told[1]) < RUNS
    assert frame.height == int(told[1]) * 100
    assert sorted(path.name for path in (tmp_path / "long-result").iterdir()) == [
        "regret.parquet",
        "regret.png",
        "summary.csv",
    ]
    assert f"runs = {told[1]}, seed = 0" in text


def test_interrupted_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert list((tmp_path / "long-result").iterdir()) == []
