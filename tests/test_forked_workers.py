"""`pytest --forks`: each test is reported once, a process that dies fails its tests, fixtures end with their file."""

import os
import re
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parent / "support"
FILES = {
    "conftest.py": """
import os, pathlib, pytest
pytest_plugins = ["forked_workers"]
def note(text):
    with open("notes", "a") as file:
        file.write(f"{text} {os.getpid()}\\n")
@pytest.fixture(scope="session")
def shared():
    note("session begins")
    yield
    note("session ends")
@pytest.fixture(scope="module")
def of_a_file():
    note("file begins")
    yield
    note("file ends")
""",
    "test_good.py": """
import pytest
@pytest.mark.parametrize("i", range(5))
def test_passes(shared, of_a_file, i): print("printed")
def test_fails(shared, of_a_file): print("seen", "at", "once"); assert 1 == 2
@pytest.mark.skip(reason="not today")
def test_skipped(): ...
""",
    "test_dies.py": """
import os
def test_before(): ...
def test_dies(): os._exit(7)
def test_after(): ...
""",
    "test_later.py": "def test_later(shared, of_a_file): ...",
    "test_last.py": "def test_last(shared, of_a_file): ...",
}


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", "."]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    ended = subprocess.run(  # noqa: S603
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_every_test_is_reported_once_and_a_death_is_a_failure(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--forks", "2")
    assert code == 1, output
    assert "3 failed, 8 passed, 1 skipped" in output
    assert "the process of this test has died, with 7" in output
    assert "the process that was to run this test has died" in output
    assert output.count("seen at once") == 1
    assert "printed" not in output
    notes = [line.rsplit(maxsplit=1) for line in (tmp_path / "notes").read_text().splitlines()]
    for process in {process for _, process in notes}:
        said = " ".join(note for note, pid in notes if pid == process)
        assert re.fullmatch(r"session begins( file begins file ends)+ session ends", said), said
    assert sum(note == "file begins" for note, _ in notes) == 3


def test_the_first_failure_can_end_it(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--forks", "1", "-x", "-k", "fails or later")
    assert code in {1, 2}, output
    assert "1 failed" in output
    assert "passed" not in output
