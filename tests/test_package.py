"""The package as a whole: light to import, honest about its names."""

import json
import re
from pathlib import Path

import pytest
from processes import run_python

import latecomer as lc

ROOT = Path(__file__).parents[1]


def test_import_brings_nothing_heavy() -> None:
    loaded = json.loads(run_python("import json, sys, latecomer; print(json.dumps(sorted(sys.modules)))"))
    heavy = {"numpy", "numba", "scipy", "polars", "matplotlib", "msgspec"} & set(loaded)
    assert heavy == set()


def test_every_public_name_is_there() -> None:
    assert [name for name in lc.__all__ if not hasattr(lc, name)] == []
    assert not hasattr(lc, "NoSuchName")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("read_conversions", ": it is latecomer.delays.read_conversions"),
        ("UnitVectors", ": it is latecomer.actions.UnitVectors"),
        ("LinUcb", "; did you mean 'LinUCB'?"),
        ("recomended", "; did you mean 'recommended'?"),
        ("NoSuchName", ""),
        ("_private", ""),
    ],
)
def test_a_name_that_is_not_there_is_suggested(name: str, suggestion: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(lc, name)
    assert str(caught.value) == f"module 'latecomer' has no attribute {name!r}{suggestion}"


def test_tab_completion_shows_the_public_names_alone() -> None:
    """Names that a process has used leave their modules in the package, which `dir` must not show."""
    used = "lc.World, lc.Client, lc.recommended, lc.delays, lc.theory"
    shown = json.loads(run_python(f"import json, latecomer as lc; {used}; print(json.dumps(dir(lc)))"))
    assert shown == sorted([*lc.__all__, "__version__"])
    for module in (lc.delays, lc.theory, lc.actions):
        assert sorted(dir(module)) == sorted(module.__all__)


def test_parts_of_the_package_need_no_import_of_their_own() -> None:
    parts = "lc.theory.upper_bound, lc.delays.Fixed, lc.actions.UnitVectors, lc.errors.InputError, lc.Conversion"
    names = run_python(f"import latecomer as lc; print([part.__name__ for part in ({parts})])")
    assert names.strip() == "['upper_bound', 'Fixed', 'UnitVectors', 'InputError', 'Conversion']"


def test_the_changelog_has_a_place_for_the_next_version() -> None:
    assert re.search(r"^## \[Unreleased\]$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_no_file_has_grown_too_long() -> None:
    folders = [ROOT / name for name in ("src", "tests", "bench", "examples", "scripts")]
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in paths}
    assert len(sizes) > 300, "the folders have moved"
    assert {path: size for path, size in sizes.items() if size > 300} == {}


def test_folders_of_tests_are_those_of_the_source() -> None:
    source = {path.parent.relative_to(ROOT / "src/latecomer") for path in (ROOT / "src").rglob("*.py")}
    tests = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(tests) > 20, "the folders have moved"
    assert {str(path) for path in tests - source} == {"properties"}


def test_docstrings_begin_with_a_verb_or_the_thing() -> None:
    """As CONTRIBUTING asks: such a line is understood without the one above it."""
    begins = re.compile(r'^ *r?"""(What|How|Whether|The same)\b.*', re.MULTILINE)
    files = sorted((ROOT / "src").rglob("*.py"))
    assert len(files) > 100
    assert [f"{path.name}: {found[0]}" for path in files for found in begins.finditer(path.read_text())] == []
