"""`latecomer reproduce`, as a person runs it."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from rich.console import Console
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.experiments.paper import experiments
from latecomer.experiments.paper.beyond_the_paper import report_beyond_the_paper
from latecomer.experiments.paper.reproduce import summarise
from latecomer.experiments.paper.sections import report_figure_1
from latecomer.experiments.paper.setting import Setting
from latecomer.simulation import simulate

SECTIONS = (
    "figure-1",
    "figure-2",
    "figure-3",
    "theorem-1",
    "theorems-2-and-3",
    "effect-of-m",
    "effect-of-delay",
    "beyond-the-paper",
    "since-the-paper",
)
OF_THE_FILE = ("figure-2", "figure-3", "beyond-the-paper")
"""The sections whose delays are those of --criteo."""

COLUMNS = (
    "timestamp uid campaign conversion conversion_timestamp conversion_id attribution click click_pos click_nb cost cpo"
)


pytestmark = pytest.mark.usefixtures("signals_that_arrive")


def reproduce(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latecomer", "reproduce", *options]
    return subprocess.run(  # noqa: S603
        command,
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "200"},
    )


def criteo_file(path: Path) -> Path:
    """A small attribution log: delays of 50 to 5,000,000 seconds, and one row that is spoilt."""
    names = [*COLUMNS.split(), "time_since_last_click", *(f"cat{i}" for i in range(1, 10))]
    rows = ["\t".join(names)]
    for i in range(1, 400):
        values = dict.fromkeys(names, "0") | {"timestamp": str(i), "conversion": "1"}
        values["conversion_timestamp"] = str(i + int(50 * 1.029**i))
        rows.append("\t".join(values[name] for name in names))
    path.write_text("\n".join([*rows, "spoilt"]) + "\n")
    return path


QUICK = ("--quick", "--runs", "3", "--seed", "7")
SHORT = ("figure-2", "figure-3")
"""The sections of the short form, both of which read the file of delays."""
SHORT_HORIZON = 20
"""Its rounds, in place of the paper's 3,000 and 10,000: so few that nothing is compiled."""


@dataclass(frozen=True)
class Written:
    """A report with the delays of a file, and what the command printed."""

    folder: Path
    sections: tuple[str, ...]
    stdout: str
    stderr: str


@pytest.fixture(scope="module", params=["short", pytest.param("whole", marks=pytest.mark.soak)])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Write a report: in this process with fewer rounds, or the whole one in a process of its own."""
    folder = tmp_path_factory.mktemp("reproduce")
    files = ["--criteo", str(criteo_file(folder / "criteo.tsv")), "--out", "here/report"]
    return _write_in_process(folder, files) if request.param == "short" else _write_whole(folder, files)


def _write_in_process(folder: Path, files: list[str]) -> Written:
    chosen = [word for name in SHORT for word in ("--section", name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(experiments, "HEAVY_HORIZON", SHORT_HORIZON)
        done = CliRunner().invoke(app, ["reproduce", "--quick", "--runs", "2", *chosen, "--jobs", "2", *files])
    assert done.exit_code == 0, done.output
    return Written(folder / "here" / "report", SHORT, done.stdout, done.stderr)


def _write_whole(folder: Path, files: list[str]) -> Written:
    done = reproduce(folder, *QUICK, "--jobs", "2", *files)
    assert done.returncode == 0, done.stderr
    return Written(folder / "here" / "report", SECTIONS, done.stdout, done.stderr)


def test_reproduce_writes_the_report_and_every_table(report: Written) -> None:
    folder = report.folder
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert {path.stem for path in folder.glob("*.csv")} == set(report.sections)
    for name in report.sections:
        assert f'<section id="{name}">' in page
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
        assert len(pl.read_csv(folder / f"{name}.csv")) > 0
        assert len(pl.read_parquet(folder / f"{name}.parquet")) > 0
    assert page.count("data:image/png;base64,") == page.count("<section") == len(report.sections)
    assert not re.search(r'(?:src|href)="(?!data:)', page), "the page must carry everything with it"
    assert "as released" in page
    assert "worse" not in report.stderr
    assert "The report is here/report/report.html" in " ".join(report.stdout.split())
    if report.sections == SECTIONS:
        _check_the_table_at_the_end(report.stdout, horizon=experiments.HORIZON)
        tables = [pl.read_parquet(folder / f"{name}.parquet") for name in ("figure-1", "beyond-the-paper")]
        _check_what_is_ours(tables[0], tables[1], page[page.index('<section id="beyond-the-paper">') :])
        _check_the_other_sections(folder)


def test_figure_1_and_what_is_ours_are_played_in_the_same_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    """The two sections with most panels, which take seconds to draw into files, and the table at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "HORIZON", SHORT_HORIZON)
        patch.setattr(experiments, "HEAVY_HORIZON", SHORT_HORIZON)
        setting = Setting(runs=2, seed=7, quick=True)
        figure_1, beyond = report_figure_1(setting), report_beyond_the_paper(setting)
        Console(width=200).print(summarise(figure_1.table, beyond.table))
    _check_the_table_at_the_end(capsys.readouterr().out, horizon=SHORT_HORIZON)
    _check_what_is_ours(figure_1.data, beyond.data, beyond.text)


def _check_the_table_at_the_end(printed: str, *, horizon: int) -> None:
    assert "as released" in printed
    assert f"Mean pseudo-regret at T = {horizon:,}" in printed
    assert "recommended (ours)" in printed


def _check_what_is_ours(figure_1: pl.DataFrame, beyond: pl.DataFrame, text: str) -> None:
    """`recommended` is named as ours, in all of the paper's worlds, with what to know; and is not in its figures."""
    for words in ("latecomer.recommended", "This section is not a reproduction", "No theorem", "were chosen over"):
        assert words in text, words
    assert figure_1.select("actions", "window", "mean_delay").n_unique() == 6
    assert figure_1["policy"].n_unique() == 6
    ours = beyond.filter(policy="recommended (ours)")
    assert ours.select("actions", "window", "mean_delay").n_unique() == 8
    for actions, window, mean_delay in (("B", 100, 100), ("U", 500, 100)):
        panel = {"actions": actions, "window": window, "mean_delay": mean_delay}
        for name in ("uniform play", "OTFLinUCB, as released"):
            assert_frame_equal(beyond.filter(policy=name, **panel), figure_1.filter(policy=name, **panel))
    assert not any("ours" in name for name in figure_1["policy"])


def _check_the_other_sections(folder: Path) -> None:
    for name in ("effect-of-m", "effect-of-delay"):
        assert "recommended (ours)" in pl.read_csv(folder / f"{name}.csv").columns
    assert {"panel", "against τ"} == set(pl.read_csv(folder / "since-the-paper.csv")["figure"])


@pytest.mark.soak
@pytest.mark.parametrize("report", ["whole"], indirect=True)
def test_the_same_seed_gives_the_same_numbers_but_where_the_file_is_used(report: Written, tmp_path: Path) -> None:
    """With one thread in place of two."""
    done = reproduce(tmp_path, *QUICK, "--jobs", "1", "--out", "again")
    assert done.returncode == 0, done.stderr
    again, folder = tmp_path / "again", report.folder
    for name in SECTIONS:
        for kind in ("csv", "parquet"):
            is_same = (again / f"{name}.{kind}").read_bytes() == (folder / f"{name}.{kind}").read_bytes()
            assert is_same == (name not in OF_THE_FILE), name


def test_the_file_of_delays_is_read(report: Written) -> None:
    page = (report.folder / "report.html").read_text(encoding="utf-8")
    assert "the file given" in page
    assert "1" in re.findall(r"skipped\D*(\d+)", page)


@pytest.mark.usefixtures("empty_pictures")
def test_ctrl_c_in_a_run_keeps_the_finished_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: Figure 2 has no runs, and the signal comes with the first one of Figure 3."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiments, "HEAVY_HORIZON", SHORT_HORIZON)
    monkeypatch.setattr(simulate, "trace_run", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    chosen = ["--section", "figure-2", "--section", "figure-3"]
    done = CliRunner().invoke(app, ["reproduce", "--runs", "20", "--jobs", "1", *chosen, "--out", "report"])
    assert done.exit_code == 130, done.output
    assert re.search(r"interrupted: 1 of 2 sections are in\s+report/report.html", done.stdout)
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count("<section") == 1
    assert page.rstrip().endswith("</html>")


INTERRUPTED = [
    (("figure-2",), "figure-3"),  # Figure 2 has no runs; Figure 3 takes long
    (("figure-1", "figure-2"), "beyond-the-paper"),
]


@pytest.mark.soak
@pytest.mark.parametrize(("finished", "unfinished"), INTERRUPTED)
def test_ctrl_c_keeps_the_finished_sections(tmp_path: Path, finished: tuple[str, ...], unfinished: str) -> None:
    chosen = [word for name in (*finished, unfinished) for word in ("--section", name)]
    command = [sys.executable, "-m", "latecomer", "reproduce", "--runs", "20", *chosen, "--out", "report"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(  # noqa: S603
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        for name in finished:
            line = process.stdout.readline()
            assert name.replace("figure-", "Figure ") in line, line
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(120) == 130
    done = len(finished)
    assert re.search(rf"interrupted: {done} of {done + 1} sections are in\s+report/report.html", rest)
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count("<section") == done
    assert page.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "spark"), "--engine must be one of 'threads', 'dask'; got 'spark'"),
        (("--engine", "dask"), "--engine dask needs the scheduler's address"),
        (("--scheduler", "tcp://x:1"), "--scheduler is for --engine dask"),
        (("--criteo", "nowhere.tsv"), "nowhere.tsv"),
        (("--section", "figure-9"), "--section must be one of 'figure-1', 'figure-2', 'figure-3', "),
        (("--out", "file"), "--out must be a folder that can be written; got 'file'"),
    ],
)
def test_bad_options_of_reproduce_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "file").write_text("in the way")
    done = CliRunner().invoke(app, ["reproduce", *options])
    assert done.exit_code == 2
    assert message in done.stderr
    assert isinstance(done.exception, SystemExit), "no traceback"
