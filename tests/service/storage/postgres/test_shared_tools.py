"""Verify and replay on PostgreSQL: damage beside the rows is found, and a long replay is not taken for an old one."""

import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psycopg
import pytest
from replicas import run_cli
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.errors import DamagedFileError, StoreError
from latecomer.service.storage.postgres.maintenance import remove_deleted_chains
from latecomer.service.tools.replay import replay
from latecomer.service.tools.shared_replay import SharedReplay
from latecomer.service.tools.verify import verify

ROWS = np.eye(2)
DAY = 86_400_000_000


def decide(database: str, count: int) -> None:
    with lc.open(database, name="offers", dim=2, window=1000, policy="OTFLinTS") as bandit:
        for number in range(count):
            bandit.convert(bandit.decide(ROWS, request_id=f"r{number}"))


def execute(database: str, statement: str) -> Any:
    with psycopg.connect(database) as connection:
        found = connection.execute(f"SET search_path = latecomer; {statement}".encode())
        while found.nextset():
            pass
        return found.fetchall() if found.description else None


DAMAGES = {
    "an answer cannot be found": ("DELETE FROM request WHERE round = 3", "the request of round 3 cannot be found"),
    "an answer is another's": (
        "UPDATE request SET round = round + 100 WHERE round = 3",
        "it lacks the request of round 103",
    ),
    "an answer of no request": (
        "INSERT INTO request VALUES (1, '\\x00112233445566778899aabbccddeeff', 4, 3)",
        "it lacks the request of round 3",
    ),
    "an answer in another row": ("UPDATE request SET seq = seq + 1 WHERE round = 3", "round 3"),
    "the head": ("UPDATE head SET seq = seq - 1 WHERE bandit = 1", "the head of the chain is another"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_finds_damage_beside_the_rows(database: str, damage: str) -> None:
    decide(database, 6)
    assert list(verify(database))[-1].startswith("offers: rows 1 to ")
    statement, reason = DAMAGES[damage]
    execute(database, statement)
    with pytest.raises(DamagedFileError, match=reason):
        list(verify(database))


def test_the_advice_for_a_damaged_row_can_be_typed(database: str, tmp_path: Path) -> None:
    decide(database, 6)
    execute(database, "UPDATE log SET rounds = rounds + 1 WHERE key = (1::bigint << 40) + 9")
    with pytest.raises(DamagedFileError, match="restore a dump into a new database") as damaged:
        list(verify(database))
    assert "-wal" not in str(damaged.value)
    commands = [line.split()[1:] for line in str(damaged.value).splitlines() if line.startswith("    latecomer ")]
    assert [words[1] for words in commands] == ["export", "replay", "delete"]
    export = [str(tmp_path / word) if word.endswith("-tables") else word for word in commands[0]]
    for words in (export, *commands[1:]):
        CliRunner().invoke(app, words)
    assert [line.partition(":")[0] for line in list(verify(database))[1:]] == ["offers-rest"]
    with lc.open(database, name="offers-rest") as bandit:
        assert bandit.stats().rounds == 4


def test_verify_accepts_a_request_id_that_was_used_again(database: str) -> None:
    """As after a copy of a file in which the first answer had been forgotten: the table has the later one."""
    decide(database, 6)
    ((first,),) = execute(database, "SELECT digest FROM request WHERE round = 1")
    with lc.open(database, name="offers") as bandit:
        execute(database, "DELETE FROM request WHERE round = 1")
        assert bandit.decide(ROWS, request_id="r0").round == 7
    assert execute(database, "SELECT round FROM request WHERE round IN (1, 7)") == [(7,)]
    assert execute(database, "SELECT digest FROM request WHERE round = 7") == [(first,)]
    assert list(verify(database))[-1].startswith("offers: rows 1 to ")


class WatchedReplay(SharedReplay):
    """A replay during which two days pass, and a replica starts, before its last row."""

    def __init__(self, address: str, *, renewal: float) -> None:
        super().__init__(address, renewal=renewal)
        self.left = 0

    def append(self, payload: bytes, *, count: int, stamp: int) -> None:
        super().append(payload, count=count, stamp=stamp)
        remove_deleted_chains(self._address, threading.Event())
        self.left = execute(self._address, "SELECT count(*) FROM log WHERE key > 2::bigint << 40")[0][0]


def begin_two_days_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the descriptor of a new replay say that it began two days ago."""
    good = SharedReplay._append_registry

    def append(self: SharedReplay, heads: Any, descriptor: Any) -> None:
        if descriptor.is_unfinished and not hasattr(self, "_bandit"):
            descriptor = msgspec.structs.replace(descriptor, stamp=descriptor.stamp - 2 * DAY)
        good(self, heads, descriptor)

    monkeypatch.setattr(SharedReplay, "_append_registry", append)


def test_a_replay_that_lasts_longer_than_a_day_is_not_removed(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(database, 6)
    begin_two_days_ago(monkeypatch)
    with WatchedReplay(database, renewal=0.0) as store:
        replay(store, "offers", "again")
        assert store.left > 6
    assert run_cli("log", "verify", database).splitlines()[-1] == "whole"
    with lc.open(database, name="offers") as old, lc.open(database, name="again") as new:
        assert old.stats().theta_hat == new.stats().theta_hat


def test_a_replay_that_was_removed_says_so_and_leaves_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was heard of it for two days, as where its machine was suspended."""
    decide(database, 6)
    begin_two_days_ago(monkeypatch)
    with (
        WatchedReplay(database, renewal=3600.0) as store,
        pytest.raises(StoreError, match="the replay into 'again' was removed"),
    ):
        replay(store, "offers", "again")
    assert execute(database, "SELECT count(*) FROM log WHERE key > 2::bigint << 40") == [(0,)]
    assert run_cli("log", "verify", database).splitlines()[-1] == "whole"
