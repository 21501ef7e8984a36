"""Files of a store have mode 0600 whatever the umask, and symbolic links are not written through."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import latecomer as lc
from latecomer.cli.output import replace_output
from latecomer.errors import FileError, InputError
from latecomer.service.http.keys import KeyFile
from latecomer.service.store import Store
from latecomer.service.tools.backup import backup


@pytest.fixture(params=[0o000, 0o022, 0o377], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


def test_every_file_of_a_store_has_mode_0600(tmp_path: Path, umask: int) -> None:
    store, copy = tmp_path / "a.db", tmp_path / "copy.db"
    KeyFile(tmp_path / "a.db.keys").add(scopes=["read"])
    with lc.open(store, dim=2, window="7d", policy="OTFLinTS") as bandit:
        bandit.decide(np.eye(2))
        backup(store, copy)
        names = {"a.db", "a.db-wal", "a.db-shm", "a.db.lock", "a.db.keys", "copy.db"}
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(names, 0o600)


def test_symbolic_link_as_lock_file_is_refused(tmp_path: Path, victim: Path) -> None:
    for target in (victim, tmp_path / "new"):
        (tmp_path / "a.db.lock").symlink_to(target)
        with pytest.raises(FileError, match=r"a\.db\.lock is a symbolic link, and is not followed: remove it"):
            Store.open(tmp_path / "a.db")
        (tmp_path / "a.db.lock").unlink()
    assert victim.read_text() == "precious"
    assert not (tmp_path / "new").exists()
    os.mkfifo(tmp_path / "a.db.lock")
    with pytest.raises(FileError, match="is no regular file: remove it"):
        Store.open(tmp_path / "a.db")


def test_backup_does_not_follow_a_symbolic_link(tmp_path: Path, victim: Path) -> None:
    Store.open(tmp_path / "a.db").close()
    for number, target in enumerate((victim, tmp_path / "new")):
        link = tmp_path / f"copy{number}.db"
        link.symlink_to(target)
        with pytest.raises(InputError, match="is there already: choose another"):
            backup(tmp_path / "a.db", link)
    (tmp_path / ".copy.db.part").symlink_to(victim)  # the name that temporary files once had
    backup(tmp_path / "a.db", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").is_symlink()
    assert victim.read_text() == "precious"
    assert not (tmp_path / "new").exists()


def test_symbolic_link_as_wal_is_not_followed(tmp_path: Path, victim: Path) -> None:
    Store.open(tmp_path / "a.db").close()
    (tmp_path / "a.db-wal").symlink_to(victim)
    with pytest.raises(FileError):
        Store.open(tmp_path / "a.db")
    assert victim.read_text() == "precious"


def test_temporary_files_are_not_written_through_links(tmp_path: Path, victim: Path) -> None:
    (tmp_path / ".table.csv.part").symlink_to(victim)
    with replace_output(tmp_path / "table.csv") as part:
        part.write_text("a,b")
    assert (tmp_path / "table.csv").read_text() == "a,b"
    assert victim.read_text() == "precious"
    assert sorted(file.name for file in tmp_path.iterdir()) == [".table.csv.part", "table.csv", "victim"]


def test_store_path_may_be_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "a.db").symlink_to(tmp_path / "data" / "b.db")
    with lc.open(tmp_path / "a.db", dim=2, window="7d", policy="OTFLinTS") as bandit:
        bandit.decide(np.eye(2))
    assert sorted(file.name for file in (tmp_path / "data").iterdir()) == ["b.db", "b.db.lock"]
