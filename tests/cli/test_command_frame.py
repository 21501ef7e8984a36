"""The command as a whole: light, readable, and its exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from latecomer import __version__
from latecomer.cli.main import Verbs, app
from latecomer.errors import DamagedFileError, InputError

RUN_AND_LIST = """
import json, sys
from latecomer.cli.main import app
try:
    app(sys.argv[1:], prog_name="latecomer")
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["reproduce", "--help"],
        ["--version"],
        ["simulate", "--help"],
        ["window", "--help"],
        ["arena", "--help"],
        ["serve", "--help"],
        ["keys", "add", "--help"],
    ],
)
def test_help_imports_no_heavy_package(arguments: list[str]) -> None:
    ended = subprocess.run([sys.executable, "-c", RUN_AND_LIST, *arguments], check=True, capture_output=True, text=True)  # noqa: S603
    roots = {name.split(".")[0] for name in json.loads(ended.stderr)}
    assert not roots & {"numpy", "numba", "scipy", "polars", "matplotlib", "distributed"}


def test_help_has_a_line_for_each_verb_and_an_example() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    lines = [line.strip() for line in shown.stdout.splitlines()]
    for verb in ("reproduce", "simulate", "arena", "window", "serve", "keys", "log", "store"):
        line = next(line for line in lines if line.startswith(f"{verb} "))
        assert line.endswith("."), "cut short"
    assert "latecomer simulate examples/simulate.toml --runs 20" in lines


@pytest.mark.parametrize(
    "verb", ["reproduce", "simulate", "arena", "window", "serve", "keys add", "keys list", "keys revoke"]
)
def test_every_verb_has_an_example(verb: str) -> None:
    shown = CliRunner().invoke(app, [*verb.split(), "--help"])
    assert shown.exit_code == 0
    assert "Example:" in shown.stdout
    assert f"latecomer {verb}" in shown.stdout


@pytest.mark.parametrize("verb", ["keys", "log", "store", "reproduce", "warm", "log replay"])
def test_help_cuts_nothing_and_names_values(verb: str) -> None:
    shown = CliRunner().invoke(app, [*verb.split(), "--help"]).stdout
    listed = shown.partition("Usage:")[2].partition("\n")[2]
    assert "..." not in listed
    assert "<" not in listed.partition("Options:")[2], "values have names, such as N"
    assert "Example" in shown


def test_the_first_key_says_that_a_server_needs_keys_from_now_on(tmp_path: Path) -> None:
    arguments = ["keys", "add", "--scope", "read", "--store", str(tmp_path / "a.db")]
    said = [CliRunner().invoke(app, arguments).stderr for _ in range(2)]
    assert ["a running server on this store needs keys from now on" in each for each in said] == [True, False]


def test_the_example_in_the_help_of_simulate_is_an_experiment_file() -> None:
    import tomllib

    from latecomer.experiments.experiment_file import parse_experiment

    shown = CliRunner().invoke(app, ["simulate", "--help"]).stdout
    text = shown.split("the policies:\n")[1].split("\n\n")[0]
    assert list(parse_experiment(tomllib.loads(text)).policies) == ["ours"]


def test_version_option_prints_the_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"latecomer {__version__}\n"


def test_python_m_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "latecomer", "--version"], check=True, capture_output=True, text=True)
    assert ended.stdout == f"latecomer {__version__}\n"


def test_an_unknown_verb_is_a_usage_error() -> None:
    ended = CliRunner().invoke(app, ["simulat"])
    assert ended.exit_code == 2
    assert "simulat" in ended.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("x must be 1"), 2), (DamagedFileError("x is damaged"), 1), (KeyboardInterrupt(), 130)],
)
def test_a_latecomer_error_is_one_line_and_an_exit_code(error: BaseException, code: int) -> None:
    failing = typer.Typer(cls=Verbs)

    @failing.callback()
    def _frame() -> None: ...

    @failing.command()
    def fail() -> None:
        raise error

    ended = CliRunner().invoke(failing, ["fail"])
    assert ended.exit_code == code
    assert ended.stderr == f"{str(error) or 'interrupted'}\n"


def test_an_unexpected_error_is_not_hidden() -> None:
    failing = typer.Typer(cls=Verbs)

    @failing.callback()
    def _frame() -> None: ...

    @failing.command()
    def fail() -> None:
        raise ZeroDivisionError

    assert isinstance(CliRunner().invoke(failing, ["fail"]).exception, ZeroDivisionError)
