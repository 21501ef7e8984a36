"""The wheel without extras, in an environment that has nothing but the packages which it declares."""

import os
import re
import subprocess
import sys
import venv
from contextlib import chdir
from importlib.metadata import distribution
from pathlib import Path

import pytest
from hatchling.build import build_wheel

from latecomer.extras import EXTRAS

ROOT = Path(__file__).parents[1]
BASE = {"msgspec", "numba", "numpy", "scipy"}


def run(*command: str | Path, code: int = 0, cwd: Path | None = None) -> str:
    """Run a command that knows nothing of the packages of this process; return what it prints."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(  # noqa: S603
        [*map(str, command)], capture_output=True, text=True, timeout=120, check=False, cwd=cwd, env=clean
    )
    assert ended.returncode == code, ended.stderr
    return ended.stdout + ended.stderr


def declared(wheel: str) -> set[str]:
    """Return the packages that a distribution needs without extras, and the packages that those need."""
    direct = {
        re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()
        for requirement in distribution(wheel).requires or ()
        if "extra ==" not in requirement and not re.search(r"python_version < ['\"]3\.1[01]", requirement)
    }
    return direct.union(*map(declared, direct))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it as pip does, which calls this function in a process of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    with chdir(ROOT):
        return folder / build_wheel(str(folder))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment of the wheel and links to the declared packages; return its interpreter."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    interpreter = home / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter)]
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel)
    [packages] = home.glob("lib/python*/site-packages")
    for package in BASE.union(*map(declared, BASE)):
        found = distribution(package)
        for name in {file.parts[0] for file in found.files or () if file.parts[0] not in {"..", "__pycache__"}}:
            (packages / name).symlink_to(Path(str(found.locate_file(name))))
    run(*pip, "check")  # what the wheel and the linked packages declare is there
    return interpreter


def test_wheel_without_extras_declares_four_packages(python: Path) -> None:
    code = "from importlib.metadata import requires; print(*(r for r in requires('latecomer') if 'extra' not in r))"
    assert {re.split("[<>=]", requirement)[0] for requirement in run(python, "-c", code).split()} == BASE


LIBRARY = """
import numpy as np, latecomer as lc

assert "site-packages" in lc.__file__, lc.__file__
policy = lc.OTFLinUCB(dim=2, window=10)
decision = policy.decide(np.eye(2))
assert policy.convert(decision) is lc.Verdict.ACCEPTED
policy.save("policy.npz")
loaded = lc.load("policy.npz")
assert (loaded.rounds, loaded.theta_hat.tolist()) == (policy.rounds, policy.theta_hat.tolist())
world = lc.World(theta=[0.3, 0.6], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=5))
result = lc.simulate(world, {"ucb": policy}, horizon=50, runs=2, progress=True)
print("regret", result.regret("ucb").shape)
for use in (result.to_frame, result.summary, lambda: lc.open, lambda: lc.Client, lambda: lc.AsyncClient,
            lambda: lc.advise_window, lambda: lc.delays.read_conversions):
    try:
        use()
    except lc.errors.MissingPackageError as error:
        print(error)
from latecomer.simulation.dask_engine import DaskEngine
try:
    DaskEngine("tcp://localhost:8786")
except lc.errors.MissingPackageError as error:
    print(error)
"""


def test_base_install_decides_converts_saves_loads_and_simulates(python: Path, tmp_path: Path) -> None:
    lines = re.split(r"[\r\n]+", run(python, "-c", LIBRARY, cwd=tmp_path).strip())
    assert "regret (2, 50)" in lines
    assert "runs: 2 of 2" in lines, "without rich, progress is a plain count"
    assert [line for line in lines if "needs" in line] == [
        "Result.to_frame needs the package polars: pip install 'latecomer[frames]'",
        "Result.summary needs the package polars: pip install 'latecomer[frames]'",
        "latecomer.open needs the package apsw: pip install 'latecomer[service]'",
        "latecomer.Client needs the package httpx: pip install 'latecomer[service]'",
        "latecomer.AsyncClient needs the package httpx: pip install 'latecomer[service]'",
        "latecomer.advise_window needs the package polars: pip install 'latecomer[frames]'",
        "latecomer.delays.read_conversions needs the package polars: pip install 'latecomer[frames]'",
        "DaskEngine needs the package distributed: pip install 'latecomer[dask]'",
    ]


def test_base_install_has_no_package_of_an_extra(python: Path) -> None:
    code = f"from importlib.util import find_spec; print([name for name in {sorted(EXTRAS)} if find_spec(name)])"
    assert run(python, "-c", code).strip() == "[]"


@pytest.mark.parametrize("command", [["bin/latecomer"], ["bin/python", "-m", "latecomer"]])
def test_command_of_a_base_install_names_its_extra(python: Path, command: list[str]) -> None:
    first, *rest = command
    printed = run(python.parents[1] / first, *rest, "--help", code=1)
    assert printed == "the command latecomer needs the package typer: pip install 'latecomer[cli]'\n"
