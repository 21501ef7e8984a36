"""The file of a store: one owner at a time, and nothing but a log."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import DAY, FakeClocks
from store_internals import sqlite_log

import latecomer as lc
from latecomer.errors import (
    ConflictError,
    DamagedFileError,
    FileError,
    InputError,
    StoreError,
    StoreLockedError,
    UnknownBanditError,
)
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.storage.rows import seq_of
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store
from latecomer.service.tools.backup import backup
from latecomer.service.tools.verify import verify

WEEK = BanditSpec(dim=2, window="7d")


def test_second_owner_is_refused_with_the_process_id(path: Path) -> None:
    store = Store.open(path)
    with pytest.raises(StoreLockedError, match=r"owned by process \d+: a log has one owner at a time"):
        Store.open(path)
    link = path.with_name("link.db")
    link.symlink_to(path)
    script = f"from latecomer.service.store import Store; Store.open({str(link)!r})"
    other = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert "StoreLockedError" in other.stderr
    store.close()
    Store.open(path).close()


CRASH = """
import os, sys
from pathlib import Path
from latecomer.service.storage import creation
from latecomer.service.store import Store
step = sys.argv[2]
if step == "before":
    creation.create_tables = lambda part: os._exit(9)
else:
    os.replace = lambda *_: os._exit(9)
Store.open(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_process_that_is_killed_while_it_creates_a_store_leaves_none(path: Path, step: str) -> None:
    child = subprocess.run([sys.executable, "-c", CRASH, str(path), step], timeout=60, check=False)  # noqa: S603
    assert child.returncode == 9
    assert not path.exists()
    with Store.open(path) as store:
        store.create("shop", WEEK)


def test_closed_store_refuses_changes(path: Path) -> None:
    store = Store.open(path)
    store.create("shop", WEEK)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="the store is closed"):
        store.decide("shop", np.eye(2))


def test_foreign_files_are_refused(path: Path) -> None:
    path.write_bytes(b"what a day" * 1000)
    with pytest.raises(DamagedFileError, match="is not a Latecomer store: check the path"):
        Store.open(path)
    path.unlink()
    with Store.open(path) as store:
        store.create("shop", WEEK)
    path.write_bytes(b"")
    with pytest.raises(DamagedFileError, match="is empty, and was a log before"):
        Store.open(path)


@pytest.mark.parametrize("opened", [Store.open, lc.open])
def test_retention_is_kept_in_the_file(path: Path, opened: Callable[..., Any]) -> None:
    """Opening without a retention, as a notebook does, prunes no more than the file's own setting."""

    def kept() -> int:
        machine = FakeClocks()
        machine.advance(20 * DAY)
        if opened is Store.open:
            with Store.open(path, clock=machine, snapshot_every=1) as store:
                for _ in range(4):
                    store.wait(store.decide("shop", np.eye(2))[1])
        else:
            with lc.open(path, name="shop", clock=machine) as bandit:
                bandit.decide(np.eye(2))
        connection = connect(path, write=False)
        ((first,),) = connection.execute("SELECT min(key - commits + 1) FROM log WHERE key > 1 << 40")
        connection.close()
        return seq_of(first)

    machine = FakeClocks()
    with Store.open(path, clock=machine, retention="30d") as store:
        store.create("shop", BanditSpec(dim=2, window="1d"))
        for _ in range(10):
            store.wait(store.decide("shop", np.eye(2))[1])
    assert kept() == 1
    Store.open(path, retention="5d", prune=False).close()
    assert kept() == 1  # prune=False does not change the setting
    Store.open(path, clock=FakeClocks(), retention="5d").close()
    assert kept() > 1


def test_default_retention_is_a_week(path: Path) -> None:
    with Store.open(path) as store:
        assert store.log.retention == 7 * DAY
    with Store.open(path, retention="forever") as store:
        assert store.log.retention is None
    with Store.open(path) as store:
        assert store.log.retention is None


def test_invalid_retention_leaves_no_file(path: Path) -> None:
    for bad in ("", "soon", "7  d", "-1d"):
        with pytest.raises(InputError, match="retention must be a whole number and one of s, m, min, h, d, w"):
            Store.open(path, retention=bad)
    assert not path.exists()


@pytest.mark.parametrize("name", ["boot", "offset", "retention", "shift"])
def test_damaged_setting_is_refused(path: Path, name: str) -> None:
    """A flipped digit is not another clock, nor another retention."""
    with Store.open(path, retention="30d") as store:
        store.settings.adjust_clock()
    connection = connect(path, write=True)
    connection.execute("UPDATE setting SET value = '1' || substr(value, 2) WHERE name = ?", (name,))
    connection.execute("UPDATE setting SET value = '2' || substr(value, 2) WHERE name = ? AND value LIKE '1%'", (name,))
    connection.close()
    with pytest.raises(DamagedFileError, match=f"the store's setting {name} is damaged"):
        Store.open(path)


def test_repeated_request_is_found_without_a_log_scan(path: Path) -> None:
    """A log may have millions of rows: SQLite's own steps are counted."""
    steps: list[int] = []
    with Store.open(path) as store:
        store.create("shop", BanditSpec(dim=2, window="7d", policy="Uniform"))
        for rounds in (range(50), range(50, 1_000)):
            for round_ in rounds:
                store.wait(store.decide("shop", np.eye(2), request_id=f"r{round_}")[1])  # a row each
            taken = 0

            def step() -> bool:
                nonlocal taken
                taken += 1
                return False

            sqlite_log(store).reader.set_progress_handler(step, 1)
            assert store.decide("shop", np.eye(2), request_id="r20")[0].round == 21
            sqlite_log(store).reader.set_progress_handler(None)
            steps.append(taken)
    assert steps[0] > 0
    assert steps[1] < 3 * steps[0]


def test_verify_finds_a_damaged_setting(path: Path) -> None:
    """Neither for `verify` nor for a copy, which is verified before it gets its name."""
    Store.open(path, retention="30d").close()
    list(verify(path))
    connection = connect(path, write=True)
    connection.execute("UPDATE setting SET value = '9' || substr(value, 2) WHERE name = 'retention'")
    connection.close()
    with pytest.raises(DamagedFileError, match="setting retention is damaged"):
        list(verify(path))
    with pytest.raises(DamagedFileError, match="setting retention is damaged"):
        backup(path, path.with_name("copy.db"))
    assert not path.with_name("copy.db").exists()


def test_older_format_is_refused(path: Path) -> None:
    Store.open(path).close()
    connection = connect(path, write=True)
    connection.pragma("user_version", 1)
    connection.close()
    with pytest.raises(FileError, match="has format 1, from before the first release"):
        Store.open(path)


def test_failed_open_changes_nothing(path: Path) -> None:
    """No retention, and no file."""
    with pytest.raises(UnknownBanditError, match=r"is not there: give dim and window"):
        lc.open(path, name="a")
    assert not list(path.parent.iterdir())
    lc.open(path, name="a", dim=2, window="1d", retention="30d").close()
    for wrong in ({"name": "typo"}, {"name": "a", "dim": 3, "window": "1d"}):
        with pytest.raises((UnknownBanditError, ConflictError)):
            lc.open(path, retention="1s", **wrong)
    with Store.open(path) as store:
        assert store.settings.retention == f"{30 * 86_400}s"


@pytest.mark.parametrize("name", ["store.db/copy.db", "x" * 252])
def test_backup_that_cannot_be_written_is_a_file_error(path: Path, name: str) -> None:
    Store.open(path).close()
    with pytest.raises(FileError, match="could not be written"):
        backup(path, path.parent / name)
    assert sorted(file.name for file in path.parent.iterdir()) == ["store.db", "store.db.lock"]


def test_delay_sum_of_short_delays_is_exact(path: Path) -> None:
    machine = FakeClocks()
    with Store.open(path, clock=machine) as store:
        store.create("shop", BanditSpec(dim=2, window="7d", policy="OTFLinUCB"))
        for _ in range(100):
            answer, _ = store.decide("shop", np.eye(2))
            machine.advance(900)  # microseconds
            store.convert("shop", [Conversion(answer.decision_id)])
        before = store.stats("shop")
    assert before.delay_sum == pytest.approx(0.09, rel=1e-12)
    with Store.open(path, clock=machine) as store:
        assert store.stats("shop").delay_sum == before.delay_sum
