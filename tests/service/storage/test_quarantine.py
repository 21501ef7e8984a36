"""Quarantine: one bandit has a damaged row; the others go on, it is left as it is, and there are ways to go on."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import HOUR, FakeClocks
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.errors import DamagedFileError, QuarantinedError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store
from latecomer.service.tools.backup import backup

SPEC = BanditSpec(dim=2, window="2d", policy="OTFLinUCB")
OFFERS = np.eye(2)
DAMAGED = "row 21 of chain 1 of the log is damaged: its checksum does not match"
MadeStore = tuple[Path, FakeClocks, list[str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    """Two bandits of forty decisions; row 21 of the first, of its twentieth decision, has lost its events."""
    path, machine = tmp_path_factory.mktemp("quarantine") / "shop.db", FakeClocks()
    ids = []
    with Store.open(path, clock=machine, retention="forever") as store:
        for name in ("shop", "news"):
            store.create(name, SPEC)
        for turn in range(40):
            answer = store.decide("shop", OFFERS, request_id=f"r{turn}")[0]
            ids.append(answer.decision_id)
            store.wait(store.decide("news", OFFERS)[1])
            machine.advance(HOUR)
    connection = connect(path, write=True)
    connection.execute("UPDATE log SET payload = zeroblob(length(payload)) WHERE key = (1 << 40) + 21")
    connection.execute("DELETE FROM snapshot WHERE key >> 40 = 1")
    connection.close()
    return path, machine, ids


@pytest.fixture
def store_path(made: MadeStore, tmp_path: Path) -> MadeStore:
    path = tmp_path / "shop.db"
    shutil.copy(made[0], path)
    return path, made[1], made[2]


def held(path: Path, number: int) -> list[Any]:
    """All that the file has of a bandit."""
    connection = connect(path, write=False)
    found = [
        list(connection.execute(f"SELECT * FROM {table} WHERE key >> 40 = ? ORDER BY 1", (number,)))  # noqa: S608
        for table in ("log", "snapshot", "snapshot_part")
    ]
    connection.close()
    return found


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_quarantined_bandit_is_neither_served_nor_written(store_path: MadeStore) -> None:
    path, machine, ids = store_path
    before = held(path, 1)
    assert any(before)
    for _ in range(2):
        machine.advance(100 * HOUR)
        with Store.open(path, clock=machine, snapshot_every=5, retention="1s") as store:
            assert DAMAGED in store.health.quarantined["shop"]
            assert [(info.name, info.quarantined) for info in store.list_bandits()] == [("news", False), ("shop", True)]
            for ask in (
                partial(store.decide, "shop", OFFERS),
                partial(store.convert, "shop", [Conversion(ids[0])]),
                partial(store.info, "shop"),
                partial(store.stats, "shop"),
                partial(store.create, "shop", SPEC),
            ):
                with pytest.raises(QuarantinedError, match=f"bandit 'shop' is quarantined: {DAMAGED}"):
                    ask()
            for _ in range(20):
                store.wait(store.decide("news", OFFERS)[1])
    assert held(path, 1) == before
    assert held(path, 2)[0][0][0] > (2 << 40) + 1  # the other was pruned meanwhile


def test_quarantined_bandit_can_be_deleted_and_created_again(store_path: MadeStore) -> None:
    path, machine, ids = store_path
    with Store.open(path, clock=machine) as store:
        store.delete("shop")
        assert store.quarantined == {}
        store.create("shop", SPEC)
        answer = store.decide("shop", OFFERS)[0]
        assert answer.round == 1
        assert store.convert("shop", [Conversion(ids[0])])[0][0].value == "unknown"
    with Store.open(path, clock=machine) as store:
        assert store.stats("shop").rounds == 1
        assert store.stats("news").rounds == 40
    assert held(path, 1) == [[], [], []]
    assert run("log", "verify", path)[0] == 0


def test_commands_that_verify_suggests_work(store_path: MadeStore, tmp_path: Path) -> None:
    """The commands are taken from its output."""
    path, _, ids = store_path
    code, output = run("log", "verify", path)
    assert code == 1
    assert "news: rows 1 to 41, 41 events, 40 rounds" in output
    assert f"shop: damaged: {DAMAGED}" in output
    commands = [line.split()[1:] for line in output.splitlines() if line.startswith("    latecomer ")]
    assert [command[1] for command in commands] == ["export", "replay", "delete"]
    tables = tmp_path / "tables"
    results = [run(*[tables if word == "shop-tables" else word for word in command]) for command in commands]
    assert [code for code, _ in results] == [1, 0, 0]
    assert "19 decisions in" in results[0][1]
    assert DAMAGED in results[0][1]
    assert results[1][1].startswith("shop-rest: 19 rounds")
    assert run("log", "verify", path)[0] == 0
    with Store.open(path, clock=FakeClocks()) as store:
        assert {info.name for info in store.list_bandits()} == {"news", "shop-rest"}
        verdicts = [verdict.value for verdict in store.convert("shop-rest", [Conversion(id_) for id_ in ids])[0]]
        assert [verdict != "unknown" for verdict in verdicts] == [True] * 19 + [False] * 21


def test_replay_of_damaged_log_needs_partial(store_path: MadeStore) -> None:
    code, output = run("log", "replay", store_path[0], "--bandit", "shop", "--into", "rest")
    assert (code, DAMAGED in output) == (1, True)
    code, output = run("log", "delete", store_path[0], "--bandit", "shop", "--confirm", "shop!")
    assert (code, "--confirm must repeat the bandit's name" in output) == (2, True)


def test_backup_refuses_a_damaged_store(store_path: MadeStore, tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match=f"bandits of {store_path[0]} are damaged"):
        backup(store_path[0], tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_damaged_store_chain_refuses_the_file(store_path: MadeStore) -> None:
    connection = connect(store_path[0], write=True)
    connection.execute("UPDATE log SET stamp = stamp + 1 WHERE key = 1")
    connection.close()
    with pytest.raises(DamagedFileError, match="row 1 of chain 0 of the log is damaged"):
        Store.open(store_path[0])
