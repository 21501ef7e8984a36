"""The file of a desk: one owner at a time, and nothing but a log."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from latecomer.errors import DamagedFileError, OwnedError, StoreError
from latecomer.service.desk import Desk
from latecomer.service.messages import Spec

WEEK = Spec(dim=2, window="7d")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "desk.db"


def test_one_owner_at_a_time(path: Path) -> None:
    desk = Desk.open(path)
    with pytest.raises(OwnedError, match=r"owned by process \d+: a log has one owner at a time"):
        Desk.open(path)
    link = path.with_name("link.db")
    link.symlink_to(path)
    script = f"from latecomer.service.desk import Desk; Desk.open({str(link)!r})"
    other = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert "OwnedError" in other.stderr
    desk.close()
    Desk.open(path).close()


def test_a_closed_desk_refuses(path: Path) -> None:
    desk = Desk.open(path)
    desk.create("shop", WEEK)
    desk.close()
    desk.close()
    with pytest.raises(StoreError, match="the desk is closed"):
        desk.decide("shop", np.eye(2))


def test_files_that_are_no_log(path: Path) -> None:
    path.write_bytes(b"what a day" * 1000)
    with pytest.raises(DamagedFileError, match="is damaged"):
        Desk.open(path)
    path.unlink()
    with Desk.open(path) as desk:
        desk.create("shop", WEEK)
    path.write_bytes(b"")
    with pytest.raises(DamagedFileError, match="is empty, and was a log before"):
        Desk.open(path)
