"""The password of the database: in no log, no error, no metric, and on no command line."""

import os
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from replicas import Replica, wait_for
from typer.testing import CliRunner

from latecomer.cli.main import app

PASSWORD = "hunter2-of-the-database"  # noqa: S105 - the database of the tests trusts everyone


def with_password(database: str) -> str:
    return database.replace("postgres@", f"postgres:{PASSWORD}@")


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--port", "0", "--store"],
        ["store", "init"],
        ["log", "verify"],
        ["keys", "add", "--scope", "read", "--store"],
    ],
    ids=" ".join,
)
def test_a_password_on_a_command_line_is_refused_and_not_repeated(database: str, words: list[str]) -> None:
    refused = CliRunner().invoke(app, [*words, with_password(database)])
    assert refused.exit_code == 2, refused.output
    assert PASSWORD not in refused.output


PASSWORDS = ["hun%ter2", "hun/ter2", "hun@ter2", "hun#ter2", "hun:ter2", "hun ter2", "hun?ter2"]
"""Passwords of which libpq's own errors show parts."""


def check_refusal(shown: str) -> None:
    shown = " ".join(shown.split())
    assert "shop:***@127.0.0.1:1/offers cannot be read" in shown
    assert "hun" not in shown
    assert "ter2" not in shown


@pytest.mark.parametrize("password", PASSWORDS)
def test_an_address_that_cannot_be_read_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("LATECOMER_STORE", f"postgresql://shop:{password}@127.0.0.1:1/offers")
    for words in (["log", "verify", "-"], ["store", "init"], ["keys", "list"]):
        refused = CliRunner().invoke(app, words)
        assert refused.exit_code == 2, refused.output
        check_refusal(refused.output)


def test_a_server_refuses_an_address_that_cannot_be_read_without_its_password(tmp_path: Path) -> None:
    address = "postgresql://shop:hun%ter2@127.0.0.1:1/offers"
    replica = Replica(address, tmp_path, LATECOMER_STORE=address)
    try:
        replica.start(wait=False)
        assert wait_for(lambda: "cannot be read" in replica.log, 20), replica.log
        check_refusal(replica.log)
    finally:
        replica.close()


def test_a_password_of_the_environment_is_shown_nowhere(
    cluster: PostgresServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = Replica(database, tmp_path, LATECOMER_STORE=with_password(database), LATECOMER_LOG_LEVEL="debug")
    shown = []
    try:
        replica.start()
        assert replica.http.put("/v1/bandits/b", json={"dim": 2, "window": 10}).status_code == 201
        shown.append(replica.http.get("/metrics").text)
        cluster.stop()
        assert wait_for(lambda: replica.status("/readyz") == 503, 10)
        shown.append(replica.http.get("/readyz").text)
        shown.append(replica.http.post("/v1/bandits/b/decisions", json={"actions": [[0.1, 0.1]]}).text)
        monkeypatch.setitem(os.environ, "LATECOMER_STORE", with_password(database))
        for words in (["log", "verify", "-"], ["keys", "list"], ["store", "init"]):
            failed = CliRunner().invoke(app, words)  # the database is away
            assert failed.exit_code != 0, words
            shown.append(failed.output)
        cluster.start()
        assert wait_for(replica.is_ready, 10)
        assert replica.stop() == 0
    finally:
        replica.close()
    assert replica.log
    assert not any(PASSWORD in text for text in (*shown, replica.log))
