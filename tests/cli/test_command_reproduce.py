"""`latecomer reproduce`, as a person runs it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from latecomer.cli.main import app

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
SHORT = ("figure-1", "figure-2", "beyond-the-paper")
"""The sections of the short form: all others compile policies of their own."""
Done = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", params=["short", pytest.param("whole", marks=pytest.mark.soak)])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Return the folder of a report with the delays of a file, and the process that wrote it."""
    folder = tmp_path_factory.mktemp("reproduce")
    criteo = criteo_file(folder / "criteo.tsv")
    chosen = [word for name in sections_of(request) for word in ("--section", name)]
    done = reproduce(folder, *QUICK, *chosen, "--jobs", "2", "--criteo", str(criteo), "--out", "here/report")
    assert done.returncode == 0, done.stderr
    return folder / "here" / "report", done


def sections_of(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return SHORT if request.param == "short" else SECTIONS


def test_reproduce_writes_the_report_and_every_table(report: Done) -> None:
    folder, done = report
    page = (folder / "report.html").read_text(encoding="utf-8")
    written = [path.stem for path in folder.glob("*.csv")]
    assert set(written) in (set(SHORT), set(SECTIONS))
    for name in written:
        assert f'<section id="{name}">' in page
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
        assert len(pl.read_csv(folder / f"{name}.csv")) > 0
        assert len(pl.read_parquet(folder / f"{name}.parquet")) > 0
    assert page.count("data:image/png;base64,") == page.count("<section") == len(written)
    assert not re.search(r'(?:src|href)="(?!data:)', page), "the page must carry everything with it"
    assert "as released" in done.stdout
    assert "Mean pseudo-regret at T = 3,000" in done.stdout
    assert "worse" not in done.stderr
    curves = pl.read_parquet(folder / "figure-1.parquet")
    assert curves.select("actions", "window", "mean_delay").n_unique() == 6
    assert curves["policy"].n_unique() == 6
    assert "recommended (ours)" in done.stdout, "in the table at the end"
    _check_what_is_ours(folder, page)
    if "since-the-paper" in written:
        _check_the_other_sections(folder)


def _check_what_is_ours(folder: Path, page: str) -> None:
    """`recommended` is named as ours, in all of the paper's worlds, with what to know; and is not in its figures."""
    section = page[page.index('<section id="beyond-the-paper">') :]
    for words in ("latecomer.recommended", "This section is not a reproduction", "No theorem", "were chosen over"):
        assert words in section, words
    curves = pl.read_parquet(folder / "beyond-the-paper.parquet")
    ours = curves.filter(policy="recommended (ours)")
    assert ours.select("actions", "window", "mean_delay").n_unique() == 8
    for actions, window, mean_delay in (("B", 100, 100), ("U", 500, 100)):
        panel = {"actions": actions, "window": window, "mean_delay": mean_delay}
        for name in ("uniform play", "OTFLinUCB, as released"):
            twin = pl.read_parquet(folder / "figure-1.parquet").filter(policy=name, **panel)
            assert_frame_equal(curves.filter(policy=name, **panel), twin)
    assert not any("ours" in name for name in pl.read_csv(folder / "figure-1.csv")["policy"])


def _check_the_other_sections(folder: Path) -> None:
    for name in ("effect-of-m", "effect-of-delay"):
        assert "recommended (ours)" in pl.read_csv(folder / f"{name}.csv").columns
    assert {"panel", "against τ"} == set(pl.read_csv(folder / "since-the-paper.csv")["figure"])


@pytest.mark.soak
@pytest.mark.parametrize("report", ["whole"], indirect=True)
def test_the_same_seed_gives_the_same_numbers_but_where_the_file_is_used(report: Done, tmp_path: Path) -> None:
    """With one thread in place of two."""
    done = reproduce(tmp_path, *QUICK, "--jobs", "1", "--out", "again")
    assert done.returncode == 0, done.stderr
    again, (folder, _) = tmp_path / "again", report
    for name in SECTIONS:
        for kind in ("csv", "parquet"):
            is_same = (again / f"{name}.{kind}").read_bytes() == (folder / f"{name}.{kind}").read_bytes()
            assert is_same == (name not in OF_THE_FILE), name


def test_the_file_of_delays_is_read(report: Done) -> None:
    page = (report[0] / "report.html").read_text(encoding="utf-8")
    assert "the file given" in page
    assert "1" in re.findall(r"skipped\D*(\d+)", page)


def test_ctrl_c_keeps_the_finished_sections(tmp_path: Path) -> None:
    chosen = [word for name in (*SHORT, "theorem-1") for word in ("--section", name)]
    command = [sys.executable, "-m", "latecomer", "reproduce", "--runs", "20", *chosen, "--out", "report"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(  # noqa: S603
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert "Figure 1" in first, first
        process.stdout.readline()  # Figure 2 is quick
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(120) == 130
    assert re.search(r"interrupted: 2 of 4 sections are in\s+report/report.html", rest)
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count("<section") == 2
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
