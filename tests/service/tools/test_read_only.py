"""`verify` and `backup` of a store on a file system that is mounted read-only, with and without a write-ahead log."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import FileError
from latecomer.service.open_bandit import OpenBandit
from latecomer.service.tools.backup import backup
from latecomer.service.tools.verify import verify

MOUNT, UNMOUNT = "/bin/mount", "/bin/umount"
DECISIONS = 40


def run(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603


@pytest.fixture
def view(tmp_path: Path) -> Iterator[Path]:
    """A folder that shows another one, `store`, and through which nothing can be written."""
    original, shown = tmp_path / "store", tmp_path / "view"
    original.mkdir()
    shown.mkdir()
    if os.geteuid() != 0 or not run(MOUNT, "--bind", str(original), str(shown)):
        pytest.skip("mounting a file system needs root")
    assert run(MOUNT, "-o", "remount,bind,ro", str(shown))
    with pytest.raises(OSError, match="Read-only"):
        (shown / "x").touch()
    yield shown
    assert run(UNMOUNT, "--lazy", str(shown))  # also where a test has failed, and something is still open


def fill(path: Path) -> OpenBandit:
    bandit = lc.open(path, name="shop", dim=2, window="7d", policy="OTFLinTS")
    for _ in range(DECISIONS):
        bandit.convert(bandit.decide(np.eye(2)).decision_id)
    return bandit


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    whole = [sys.executable, "-m", "latecomer", *arguments]
    return subprocess.run(whole, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603


@pytest.mark.parametrize("beside", [(), ("-wal",), ("-wal", "-shm")], ids=str)
def test_verify_export_backup_on_read_only_media(view: Path, tmp_path: Path, beside: tuple[str, ...]) -> None:
    """As it is after a clean stop, and as a kill leaves it: what is ahead of it was acknowledged, and must be seen."""
    bandit = fill(tmp_path / "a.db")
    if not beside:
        bandit.close()
    for suffix in ("", *beside):
        shutil.copy(tmp_path / f"a.db{suffix}", tmp_path / "store" / f"a.db{suffix}")
    if beside:
        bandit.close()
    before = {file.name: file.read_bytes() for file in view.iterdir()}
    whole = f"shop: rows 1 to {2 * DECISIONS + 1}, {2 * DECISIONS + 1} events, {DECISIONS} rounds"
    assert list(verify(view / "a.db"))[1:] == [whole]
    assert backup(view / "a.db", tmp_path / "copy.db")[1:] == [whole]
    assert {file.name: file.read_bytes() for file in view.iterdir()} == before
    with lc.open(tmp_path / "copy.db", name="shop") as copy:
        assert copy.stats().rounds == DECISIONS
        assert copy.stats().conversions["accepted"] == DECISIONS


def test_verify_export_backup_on_read_only_view_of_a_store_in_use(view: Path, tmp_path: Path) -> None:
    """A volume that a server writes to, mounted read-only where copies are made."""
    with fill(tmp_path / "store" / "a.db") as bandit:
        for _ in range(3):
            bandit.decide(np.eye(2))
        verified = command("log", "verify", str(view / "a.db"))
        assert verified.returncode == 0, verified.stderr
        assert f"{DECISIONS + 3} rounds" in verified.stdout
        copied = command("backup", str(view / "a.db"), str(tmp_path / "copy.db"))
        assert copied.returncode == 0, copied.stderr
        bandit.decide(np.eye(2))
    with lc.open(tmp_path / "copy.db", name="shop") as copy:
        assert copy.stats().rounds == DECISIONS + 3


def test_open_on_read_only_media_is_refused(view: Path, tmp_path: Path) -> None:
    fill(tmp_path / "store" / "a.db").close()
    with pytest.raises(FileError, match=r"a\.db\.lock cannot be .*Read-only file system; give a folder that can be"):
        lc.open(view / "a.db", name="shop")
    with pytest.raises(FileError, match=r"copy\.db could not be written: Read-only file system"):
        backup(tmp_path / "store" / "a.db", view / "copy.db")
