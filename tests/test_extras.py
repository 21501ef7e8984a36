"""Optional packages: each belongs to an extra of pyproject.toml, and its absence is explained in one way."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from latecomer.errors import MissingPackageError
from latecomer.extras import EXTRAS, explain_missing_package, require_packages

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def distributions(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements}


@cache
def installed_packages() -> Mapping[str, list[str]]:
    """Return the distributions of each package, read once: there are some hundred."""
    return packages_distributions()


def imported_packages() -> set[str]:
    """Return the packages that the source imports anywhere, the standard library's left out."""
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module or "")
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
                names |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"latecomer"}


def test_every_imported_package_is_a_base_dependency_or_in_the_table_of_extras() -> None:
    base = distributions(PROJECT["dependencies"]) | {"llvmlite"}  # Numba's own
    assert imported_packages() - set(EXTRAS) == base


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_extra_of_the_table_installs_the_package(package: str, extra: str) -> None:
    installed = distributions(PROJECT["optional-dependencies"][extra])
    assert installed & {name.replace("_", "-") for name in installed_packages()[package]}


def test_all_extras_are_in_all() -> None:
    [everything] = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"\w+", everything)) == {"latecomer", *EXTRAS.values()}


def test_missing_packages_are_named_at_once_with_their_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("polars", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError) as raised:
        require_packages("latecomer reproduce", "polars", "numpy", "matplotlib")
    command = "pip install 'latecomer[frames,plot]'"
    assert str(raised.value) == f"latecomer reproduce needs the packages polars and matplotlib: {command}"


def test_import_error_of_another_package_stays_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as raised, explain_missing_package("anything"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401
    assert not isinstance(raised.value, MissingPackageError)


VERBS = [
    ("polars", ["window", "log.csv"], "latecomer window", "frames"),
    ("matplotlib", ["simulate", "no-such-file.toml"], "latecomer simulate", "plot"),
    ("apsw", ["backup", "shop.db", "copy.db"], "latecomer backup", "service"),
]
MORE_VERBS = [
    ("matplotlib", ["arena"], "latecomer arena", "plot"),
    ("matplotlib", ["reproduce"], "latecomer reproduce", "plot"),
    ("polars", ["log", "export", "shop.db", "--bandit", "offers", "--out", "x"], "latecomer log", "frames"),
]
"""Of packages that others need too; in the soak."""
EACH_VERB = """
import json, os, sys
from latecomer.__main__ import main
import latecomer.cli.main
for number, (package, arguments, *_) in enumerate(json.loads(sys.argv[1])):
    if os.fork() == 0:
        assert package not in sys.modules
        sys.modules[package] = None
        os.dup2(os.open(f"{number}.txt", os.O_WRONLY | os.O_CREAT), 2)
        os.mkdir(f"{number}")
        os.chdir(f"{number}")
        sys.argv[1:] = arguments
        main()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@pytest.mark.parametrize("verbs", [VERBS, pytest.param(MORE_VERBS, marks=pytest.mark.soak)], ids=["three", "more"])
def test_verb_names_the_missing_package_before_it_works(tmp_path: Path, verbs: list[Any]) -> None:
    """Run every verb without its package, in processes that one has forked."""
    command = [sys.executable, "-c", EACH_VERB, json.dumps(verbs)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)  # noqa: S603
    assert ended.stdout.split() == ["1"] * len(verbs)
    for number, (package, _, user, extra) in enumerate(verbs):
        printed = (tmp_path / f"{number}.txt").read_text()
        assert printed == f"{user} needs the package {package}: pip install 'latecomer[{extra}]'\n"
        assert list((tmp_path / f"{number}").iterdir()) == []
