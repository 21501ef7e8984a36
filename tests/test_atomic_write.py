"""Atomic writes: a file appears whole or not at all, and nothing else is left in its folder."""

import os
import stat
from pathlib import Path

import pytest

from latecomer.atomic_write import create_file, replace_file


def test_replace_file_leaves_the_old_file_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replace_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("the disk is gone"), KeyboardInterrupt()])
def test_replace_file_keeps_the_old_file_where_writing_fails(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(type(error)), replace_file(path) as part:  # noqa: PT012
        part.write_text("ne")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_replace_file_syncs_the_file_before_its_new_name_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "file", []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append((os.fstat(descriptor).st_ino, path.exists())))
    with replace_file(path) as part:
        part.write_text("new")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o377], ids=oct)
def test_private_file_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with replace_file(tmp_path / "private", private=True) as part:
            assert stat.S_IMODE(part.stat().st_mode) == 0o600
        with replace_file(tmp_path / "shared"):
            pass
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"private": 0o600, "shared": 0o666 & ~umask}


def test_create_file_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "link", private=False)
    assert not (tmp_path / "target").exists()
