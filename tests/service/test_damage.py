"""A file cut short or changed: a consistent beginning is recovered, or it is refused; never a wrong state."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from machines import FakeMachine, unit_rows

from latecomer.errors import DamagedFileError, FileError, StoreError
from latecomer.service.bandit import Bandit
from latecomer.service.births import Birth
from latecomer.service.desk import Desk
from latecomer.service.log import GENESIS, connect, key_of, rows
from latecomer.service.messages import Conversion, Spec
from latecomer.service.recovery import births, fold

MEGABYTE = 1 << 20
State = tuple[int, bytes, bytes, str]
SPECS = {"shop": Spec(dim=2, window="7d"), "news": Spec(dim=5, window=300, policy="OTFLinUCB")}


def fill(desk: Desk, turns: int) -> None:
    """A few thousand events for two bandits, in rows of many sizes."""
    generator = np.random.default_rng(5)
    for name, spec in SPECS.items():
        desk.create(name, spec)
    for turn in range(turns):
        for name, spec in SPECS.items():
            sets = [unit_rows(generator, 3, spec.dim) for _ in range(generator.integers(1, 40))]
            answers = [desk.decide(name, rows_, ["a", "b", "c"])[0] for rows_ in sets]
            _, ticket = desk.convert(name, [Conversion(answer.decision_id, 0.5) for answer in answers[::3]])
        if turn % 2:
            desk.wait(ticket)
    desk.wait(ticket)


def state_of(bandit: Bandit) -> State:
    learner = bandit.learner
    return learner.rounds, learner.V.tobytes(), learner.B.tobytes(), str(learner._randomness.state())


def every_prefix(path: Path) -> dict[str, dict[int, State]]:
    """The state of each bandit after each of its rows."""
    connection = connect(path, write=False)
    found, _ = births(connection, {})
    states = {birth.name: _prefixes(connection, birth) for birth in found.values()}
    connection.close()
    return states


def _prefixes(connection: object, birth: Birth) -> dict[int, State]:
    bandit, states = Bandit(birth, birth.learner()), {}
    for row in rows(connection, birth.number, after=0, before=GENESIS):  # type: ignore[arg-type]
        fold(bandit, [row])
        states[row.seq] = state_of(bandit)
    return states


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, dict[int, State]]]:
    """A log that was closed, the same as a crash would leave it with its WAL, and every state that it went through."""
    folder = tmp_path_factory.mktemp("originals")
    closed, crashed = folder / "closed.db", folder / "crashed.db"
    with Desk.open(closed, clock=FakeMachine(), snapshot_every=700) as desk:
        fill(desk, 220)
    with Desk.open(closed, clock=FakeMachine(), snapshot_every=700) as desk:  # with a WAL that begins anew
        fill(desk, 60)
        for suffix in ("", "-wal"):
            shutil.copy(f"{closed}{suffix}", f"{crashed}{suffix}")
    return closed, crashed, every_prefix(closed)


Damage = Callable[[np.random.Generator, bytearray], bytearray]


def cut(generator: np.random.Generator, data: bytearray) -> bytearray:
    """The file ends anywhere in its last megabyte."""
    return data[: len(data) - int(generator.integers(1, min(len(data), MEGABYTE) + 1))]


def flip(generator: np.random.Generator, data: bytearray) -> bytearray:
    """One to eight bytes of its last megabyte are others."""
    for _ in range(generator.integers(1, 9)):
        data[len(data) - int(generator.integers(1, min(len(data), MEGABYTE) + 1))] ^= int(generator.integers(1, 256))
    return data


def blank(generator: np.random.Generator, data: bytearray) -> bytearray:
    """A block of its last megabyte is zeros, as after a write that never happened."""
    at = len(data) - int(generator.integers(1, min(len(data), MEGABYTE) + 1))
    data[at : at + 4096] = bytes(len(data[at : at + 4096]))
    return data


def survives(path: Path, states: dict[str, dict[int, State]]) -> str:
    """Open a damaged log: refused, or one of the states that it went through, from which it goes on."""
    try:
        desk = Desk.open(path, clock=FakeMachine())
    except FileError as error:
        loud = any(word in str(error) for word in ("damaged", "is empty", "cannot be read", "not a log"))
        return "refused" if loud else f"refused without a reason: {error}"
    seqs = {bandit.info.name: desk._writer.heads[bandit.number][0] for bandit in desk._bandits.values()}
    for name, seq in seqs.items():
        assert state_of(desk._bandits[name]) == states[name][seq], (name, seq)
    try:
        for name in seqs:
            _, ticket = desk.decide(name, np.eye(SPECS[name].dim), request_id="afterwards")
            desk.wait(ticket, timeout=1)
    except StoreError:
        return "refused later"  # SQLite met the damage when it wrote
    finally:
        desk.close()
    whole = all(seq == max(states[name]) for name, seq in seqs.items()) and seqs.keys() == states.keys()
    return "whole" if whole else "a beginning"


def outcomes(originals: tuple[Path, Path, dict[str, dict[int, State]]], folder: Path, seeds: range) -> dict[str, int]:
    closed, crashed, states = originals
    counts: dict[str, int] = {}
    for seed in seeds:
        generator = np.random.default_rng(seed)
        damage: Damage = (cut, flip, blank)[seed % 3]
        source, suffix = ((closed, ""), (crashed, "-wal"), (crashed, ""))[seed // 3 % 3]
        path = folder / f"{seed}.db"
        for part in ("", "-wal"):
            if Path(f"{source}{part}").exists():
                shutil.copy(f"{source}{part}", f"{path}{part}")
        victim = Path(f"{path}{suffix}")
        victim.write_bytes(damage(generator, bytearray(victim.read_bytes())))
        Path(f"{path}.owner").write_bytes(Path(f"{closed}.owner").read_bytes())
        outcome = survives(path, states)
        counts[outcome] = counts.get(outcome, 0) + 1
        for left in folder.glob(f"{seed}.db*"):
            left.unlink()
    return counts


def test_two_hundred_damaged_logs(originals: tuple[Path, Path, dict[str, dict[int, State]]], tmp_path: Path) -> None:
    assert originals[0].stat().st_size > MEGABYTE
    assert Path(f"{originals[1]}-wal").stat().st_size > MEGABYTE
    counts = outcomes(originals, tmp_path, range(200))
    assert min(counts["refused"], counts["a beginning"], counts["whole"]) > 20, counts
    assert counts.keys() <= {"refused", "refused later", "a beginning", "whole"}, counts


@pytest.mark.soak
def test_five_thousand_damaged_logs(originals: tuple[Path, Path, dict[str, dict[int, State]]], tmp_path: Path) -> None:
    counts = outcomes(originals, tmp_path, range(1000, 6000))
    assert counts["refused"] > 500, counts


def test_a_row_that_is_missing_changed_or_moved_is_named(
    originals: tuple[Path, Path, dict[str, dict[int, State]]], tmp_path: Path
) -> None:
    last = max(originals[2]["shop"])
    changes = {
        f"row {last - 1} of chain 1 of the log is damaged: it is missing": ("DELETE FROM log WHERE key = ?", last - 1),
        f"row {last} of chain 1 of the log is damaged: its checksum": ("UPDATE log SET rounds = 3 WHERE key = ?", last),
        f"row {last} of chain 1 of the log is damaged: its columns": ("UPDATE log SET stamp = 'x' WHERE key = ?", last),
        "row 1 of chain 1 of the log is damaged: it is missing": ("DELETE FROM log WHERE key >= ?", 0),
    }
    for i, (message, (statement, seq)) in enumerate(changes.items()):
        path = tmp_path / f"{i}.db"
        shutil.copy(originals[0], path)
        connection = connect(path, write=True)
        connection.execute("DELETE FROM snapshot")
        connection.execute(statement, (key_of(1, seq),))
        connection.close()
        with pytest.raises(DamagedFileError) as caught:
            Desk.open(path)
        assert message in str(caught.value)


def test_rows_that_change_places_are_named(
    originals: tuple[Path, Path, dict[str, dict[int, State]]], tmp_path: Path
) -> None:
    path = tmp_path / "swapped.db"
    shutil.copy(originals[0], path)
    connection = connect(path, write=True)
    for old, new in ((5, 0), (6, 5), (0, 6)):
        connection.execute("UPDATE log SET key = ? WHERE key = ?", (key_of(1, new), key_of(1, old)))
    connection.execute("DELETE FROM snapshot")
    connection.close()
    with pytest.raises(DamagedFileError, match="row 5 of chain 1 of the log is damaged: its checksum does not match"):
        Desk.open(path)


def test_a_damaged_snapshot_costs_nothing_but_time(
    originals: tuple[Path, Path, dict[str, dict[int, State]]], tmp_path: Path
) -> None:
    path = tmp_path / "desk.db"
    for which in ("key = (SELECT max(key) FROM part)", "1"):
        shutil.copy(originals[0], path)
        connection = connect(path, write=True)
        connection.execute(f"UPDATE part SET data = zeroblob(100) WHERE {which}")  # noqa: S608 - our own words
        connection.close()
        with Desk.open(path) as desk:
            for name, states in originals[2].items():
                assert state_of(desk._bandits[name]) == states[max(states)]
