"""`latecomer store`, and the other verbs on the address of a database."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app


def latecomer(*arguments: object, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)
    return result.exit_code, result.output + ("" if result.exception is None else f"{result.exception}")


def test_init_creates_the_tables_once(cluster: Any) -> None:
    address = cluster.create_database()
    assert latecomer("store", "init", address) == (0, f"{address} has a store now\n")
    assert latecomer("store", "init", LATECOMER_STORE=address) == (0, f"{address} has a store already\n")
    assert latecomer("store", "upgrade", address) == (0, f"{address} has version 1 already\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["store", "init", "shop.db"], "ADDRESS must begin with postgresql://; got 'shop.db'"),
        (["store", "init"], "LATECOMER_STORE, which is not set"),
        (["store", "init", "postgresql://shop:secret@db/offers"], "a password must not stand in a command line"),
        (["store", "copy", "shop.db", "postgresql://shop:secret@db/offers"], "a password must not stand"),
        (["log", "verify", "postgresql://shop:secret@db/offers"], "a password must not stand in a command line"),
        (["keys", "list", "--store", "postgresql://shop:secret@db/offers"], "a password must not stand"),
        (["serve", "--store", "postgresql://shop:secret@db/offers"], ""),
        (["log", "adjust-clock", "postgresql://shop@db/offers"], "on PostgreSQL, the time is the database's"),
    ],
)
def test_wrong_addresses_are_refused_without_the_password(arguments: list[str], said: str) -> None:
    code, output = latecomer(*arguments)
    assert code == 2
    assert said in output
    assert "secret" not in output


def test_a_database_without_a_store_names_the_remedy(cluster: Any) -> None:
    address = cluster.create_database()
    code, output = latecomer("log", "verify", address)
    assert code == 1
    assert f"{address} has no store: make one with `latecomer store init {address}`" in output


def test_tables_of_a_later_version_are_refused(cluster: Any) -> None:
    address = cluster.create_database()
    latecomer("store", "init", address)
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE latecomer.version SET number = 2")
    for arguments in (["log", "verify", address], ["store", "upgrade", address], ["store", "init", address]):
        code, output = latecomer(*arguments)
        assert code == 1
        assert "has version 2, and this Latecomer reads up to 1: update" in output


def test_a_copy_needs_an_empty_target(database: str, tmp_path: Path) -> None:
    with lc.open(tmp_path / "shop.db", dim=2, window=10, policy="OTFLinUCB") as bandit:
        bandit.decide([[1.0, 0.0]])
    assert latecomer("store", "copy", tmp_path / "shop.db", database)[0] == 0
    code, output = latecomer("store", "copy", tmp_path / "shop.db", database)
    assert (code, f"the store of {database} must be empty; it has bandits" in output) == (2, True)
    code, output = latecomer("store", "copy", database, tmp_path / "shop.db")
    assert (code, "is there already: choose another" in output) == (2, True)
    assert latecomer("store", "copy", "-", tmp_path / "back.db", LATECOMER_STORE=database)[0] == 0
    with lc.open(tmp_path / "back.db") as bandit:
        assert bandit.decide([[1.0, 0.0]]).round == 2


def test_the_verbs_of_the_log_take_an_address(database: str, tmp_path: Path) -> None:
    with lc.open(database, name="shop", dim=2, window=10, policy="OTFLinUCB") as bandit:
        bandit.convert(bandit.decide([[1.0, 0.0]]))
    assert latecomer("log", "export", database, "--bandit", "shop", "--out", tmp_path / "tables")[0] == 0
    assert latecomer("log", "replay", database, "--bandit", "shop", "--into", "copy", "--window", "5")[0] == 0
    assert latecomer("log", "replay", database, "--bandit", "shop", "--into", "copy")[0] == 2
    assert latecomer("log", "delete", database, "--bandit", "shop", "--confirm", "shop")[0] == 0
    with lc.open(database, name="copy") as bandit:
        assert bandit.stats().conversions["accepted"] == 1
    code, output = latecomer("log", "verify", database)
    assert (code, output.splitlines()[-1], "shop: " in output) == (0, "whole", False)
