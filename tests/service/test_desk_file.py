"""The file of a desk: one owner at a time, and nothing but a log."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import DAY, FakeMachine

import latecomer as lc
from latecomer.errors import (
    ConflictError,
    DamagedFileError,
    FileError,
    InputError,
    OwnedError,
    StoreError,
    UnknownBanditError,
)
from latecomer.service.backup import backup
from latecomer.service.desk import Desk
from latecomer.service.log import connect, seq_of
from latecomer.service.messages import Conversion, Spec
from latecomer.service.verify import verify

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


@pytest.mark.parametrize("opened", [Desk.open, lc.open])
def test_a_file_remembers_how_long_to_keep(path: Path, opened: Callable[..., Any]) -> None:
    """Whoever opens it next without a word, a notebook say, prunes no more than its owner would."""

    def kept() -> int:
        machine = FakeMachine()
        machine.advance(20 * DAY)
        if opened is Desk.open:
            with Desk.open(path, clock=machine, snapshot_every=1) as desk:
                for _ in range(4):
                    desk.wait(desk.decide("shop", np.eye(2))[1])
        else:
            with lc.open(path, name="shop", clock=machine) as bandit:
                bandit.decide(np.eye(2))
        connection = connect(path, write=False)
        ((first,),) = connection.execute("SELECT min(key - span + 1) FROM log WHERE key > 1 << 40")
        connection.close()
        return seq_of(first)

    machine = FakeMachine()
    with Desk.open(path, clock=machine, retention="30d") as desk:
        desk.create("shop", Spec(dim=2, window="1d"))
        for _ in range(10):
            desk.wait(desk.decide("shop", np.eye(2))[1])
    assert kept() == 1
    Desk.open(path, retention="5d", prune=False).close()
    assert kept() == 1  # it was not told for good by whoever must not prune
    Desk.open(path, clock=FakeMachine(), retention="5d").close()
    assert kept() > 1


def test_a_new_file_keeps_a_week(path: Path) -> None:
    with Desk.open(path) as desk:
        assert desk._keeper.retention == 7 * DAY
    with Desk.open(path, retention="forever") as desk:
        assert desk._keeper.retention is None
    with Desk.open(path) as desk:
        assert desk._keeper.retention is None


def test_a_bad_retention_leaves_no_file(path: Path) -> None:
    for bad in ("", "soon", "7  d", "-1d"):
        with pytest.raises(InputError, match="retention must be a whole number and one of s, m, min, h, d, w"):
            Desk.open(path, retention=bad)
    assert not path.exists()


@pytest.mark.parametrize("name", ["boot", "offset", "retention", "shift"])
def test_what_a_file_remembers_is_sealed(path: Path, name: str) -> None:
    """A flipped digit is not another clock, nor another retention."""
    with Desk.open(path, retention="30d") as desk:
        desk.adjust_clock()
    connection = connect(path, write=True)
    connection.execute("UPDATE setting SET value = '1' || substr(value, 2) WHERE name = ?", (name,))
    connection.execute("UPDATE setting SET value = '2' || substr(value, 2) WHERE name = ? AND value LIKE '1%'", (name,))
    connection.close()
    with pytest.raises(DamagedFileError, match=f"what the log knows of its {name} is damaged"):
        Desk.open(path)


def test_a_repeated_request_is_found_without_reading_the_log(path: Path) -> None:
    """A log may have millions of rows: SQLite's own steps are counted."""
    steps: list[int] = []
    with Desk.open(path) as desk:
        desk.create("shop", WEEK)
        for count in (100, 2_000):
            while desk.stats("shop").rounds < count:
                _answer, ticket = desk.decide("shop", np.eye(2), request_id=f"r{desk.stats('shop').rounds}")
                desk.wait(ticket)  # a row each
            taken = 0

            def step() -> bool:
                nonlocal taken
                taken += 1
                return False

            desk.reader.set_progress_handler(step, 1)
            assert desk.decide("shop", np.eye(2), request_id="r50")[0].round == 51
            desk.reader.set_progress_handler(None)
            steps.append(taken)
    assert steps[0] > 0
    assert steps[1] < 3 * steps[0]


def test_a_damaged_memory_is_not_whole(path: Path) -> None:
    """Neither for `verify` nor for a copy, which is verified before it gets its name."""
    Desk.open(path, retention="30d").close()
    list(verify(path))
    connection = connect(path, write=True)
    connection.execute("UPDATE setting SET value = '9' || substr(value, 2) WHERE name = 'retention'")
    connection.close()
    with pytest.raises(DamagedFileError, match="of its retention is damaged"):
        list(verify(path))
    with pytest.raises(DamagedFileError, match="of its retention is damaged"):
        backup(path, path.with_name("copy.db"))
    assert not path.with_name("copy.db").exists()


def test_a_format_of_before(path: Path) -> None:
    Desk.open(path).close()
    connection = connect(path, write=True)
    connection.pragma("user_version", 1)
    connection.close()
    with pytest.raises(FileError, match="has format 1, from before the first release"):
        Desk.open(path)


def test_what_fails_to_open_changes_nothing(path: Path) -> None:
    """No retention, and no file."""
    with pytest.raises(UnknownBanditError, match=r"is not there: give dim and window"):
        lc.open(path, name="a")
    assert not list(path.parent.iterdir())
    lc.open(path, name="a", dim=2, window="1d", retention="30d").close()
    for wrong in ({"name": "typo"}, {"name": "a", "dim": 3, "window": "1d"}):
        with pytest.raises((UnknownBanditError, ConflictError)):
            lc.open(path, retention="1s", **wrong)
    with Desk.open(path) as desk:
        assert desk.retention == f"{30 * 86_400}s"


@pytest.mark.parametrize("name", ["desk.db/copy.db", "x" * 252])
def test_a_copy_that_cannot_be_made_is_an_error_of_ours(path: Path, name: str) -> None:
    Desk.open(path).close()
    with pytest.raises(FileError, match="could not be written"):
        backup(path, path.parent / name)
    assert sorted(file.name for file in path.parent.iterdir()) == ["desk.db", "desk.db.owner"]


def test_short_delays_add_up(path: Path) -> None:
    machine = FakeMachine()
    with Desk.open(path, clock=machine) as desk:
        desk.create("shop", WEEK)
        for _ in range(100):
            answer, _ = desk.decide("shop", np.eye(2))
            machine.advance(900)  # microseconds
            desk.convert("shop", [Conversion(answer.decision_id)])
        before = desk.stats("shop")
    assert before.delay_sum == pytest.approx(0.09, rel=1e-12)
    with Desk.open(path, clock=machine) as desk:
        assert desk.stats("shop").delay_sum == before.delay_sum
