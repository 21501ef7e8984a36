"""A full disk: changes are refused, reads go on, and when there is room again so does everything; nothing is lost."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import filled
import pytest

MOUNT, UNMOUNT = "/bin/mount", "/bin/umount"


def run(database: Path, how: str) -> None:
    script = Path(filled.__file__)
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, str(script), str(database), how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(script.parent), *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "recovered" in done.stdout


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    run(tmp_path / "desk.db", "limit")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    command = [MOUNT, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:  # noqa: S603
        pytest.skip("mounting a file system needs root; test_files_that_may_not_grow tests the same without")
    yield tmp_path
    subprocess.run([UNMOUNT, str(tmp_path)], check=True)  # noqa: S603


def test_a_full_file_system(small_disk: Path) -> None:
    run(small_disk / "desk.db", "disk")
