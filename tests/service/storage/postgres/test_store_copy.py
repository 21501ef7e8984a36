"""`latecomer store copy`, SQLite → PostgreSQL → SQLite: the state, the log and the answers are the same bits."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fake_clocks import state_of, unit_rows
from replicas import run_cli
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, Revocation
from latecomer.service.store import Store

SPECS = {
    "shop": BanditSpec(dim=3, window=30, parameters={"seed": 1}),
    "sampled": BanditSpec(dim=2, window=10**9, policy="OTFLinTS", parameters={"seed": 2}),
    "bounded": BanditSpec(
        dim=2, window=20, policy="OTFLinUCB", encoder=lc.Encoder(2, actions={"price": {"scale": 9}}).spec
    ),
    "untouched": BanditSpec(dim=2, window=50),
}
IDS = ["x", "y", "ζ"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("played") / "first.db"
    play(path)
    return path


@pytest.fixture
def first(played: Path, tmp_path: Path) -> Path:
    """Return a file of its own with the decisions of `play`."""
    return Path(shutil.copy(played, tmp_path))


def play(path: Path, turns: int = 50) -> None:
    """Play decisions with and without request ids, conversions, duplicates, late and unknown ones, and revocations."""
    generator = np.random.default_rng(5)
    with Store.open(path, snapshot_every=60) as store:
        for name, spec in SPECS.items():
            store.create(name, spec)
        store.create("deleted", SPECS["sampled"])
        for name in ("shop", "sampled", "bounded", "deleted"):
            answers = []
            for turn in range(turns):
                rows = unit_rows(generator, 3, SPECS.get(name, SPECS["sampled"]).dim)
                request_id = f"r{turn}" if turn % 2 else None
                answer, ticket = store.decide(name, rows, IDS if turn % 3 else None, request_id=request_id)
                answers.append(answer)
                chosen = answers[int(generator.integers(len(answers)))]
                store.convert(name, [Conversion(chosen.decision_id, turn / turns)] * (turn % 3))
                if turn % 10 == 9:
                    store.revoke(name, [Revocation(chosen.decision_id), Revocation("1-000000000000000000000000")])
                if turn % 7 == 0:
                    store.wait(ticket)
            store.wait(ticket)
        store.delete("deleted")


def tables(store: object, folder: Path) -> dict[str, pl.DataFrame]:
    found = {}
    for name in ("shop", "sampled", "bounded"):
        run_cli("log", "export", store, "--bandit", name, "--out", folder / name)
        for file in sorted((folder / name).glob("*.parquet")):
            found[f"{name}/{file.name}"] = pl.read_parquet(file)
    return found


def test_a_copy_there_and_back_is_the_same_bits(database: str, first: Path, tmp_path: Path) -> None:
    back = tmp_path / "back.db"
    run_cli("store", "copy", first, database)
    run_cli("store", "copy", database, back)
    for store in (first, database, back):
        assert run_cli("log", "verify", store).splitlines()[-1] == "whole"
    expected = tables(first, tmp_path / "a")
    for store, folder in ((database, tmp_path / "b"), (back, tmp_path / "c")):
        found = tables(store, folder)
        assert found.keys() == expected.keys()
        for table, frame in expected.items():
            assert frame.equals(found[table]), table
    with Store.open(first) as source, Store.open(back) as copy:
        assert [info.name for info in copy.list_bandits()] == [info.name for info in source.list_bandits()]
        for name, spec in SPECS.items():
            assert copy.info(name) == source.info(name)
            assert copy.info(name).encoder == spec.encoder
            assert state_of(copy, name) == state_of(source, name), name
            rows = unit_rows(np.random.default_rng(9), 4, spec.dim)
            (one, _), (two, _) = source.decide(name, rows), copy.decide(name, rows)
            assert (one.round, one.index, one.score) == (two.round, two.index, two.score), name


def test_a_copy_in_the_database_goes_on_as_the_file_would(database: str, first: Path) -> None:
    run_cli("store", "copy", first, database)
    generator = np.random.default_rng(6)
    with lc.open(first, name="shop") as source, lc.open(database, name="shop") as copy:
        assert source.stats() == copy.stats()
        for turn in range(20):
            rows = unit_rows(generator, 3, 3)
            one, two = (bandit.decide(rows, request_id=f"new{turn}") for bandit in (source, copy))
            assert (one.round, one.index, one.score) == (two.round, two.index, two.score)
            assert source.convert(one) is copy.convert(two)
        assert source.stats() == copy.stats()


def test_a_copy_answers_the_requests_of_before(database: str, tmp_path: Path) -> None:
    first, back = tmp_path / "first.db", tmp_path / "back.db"
    rows = [[0.6, 0.0], [0.0, 0.8]]
    with lc.open(first, name="offers", dim=2, window=100) as bandit:
        answers = [bandit.decide(rows, ids=["a", "b"], request_id=f"r{i}") for i in range(20)]
        bandit.convert(answers[3])
    run_cli("store", "copy", first, database)
    run_cli("store", "copy", database, back)
    for store in (database, back):
        with lc.open(store, name="offers") as bandit:
            assert [bandit.decide(rows, ids=["a", "b"], request_id=f"r{i}") for i in range(20)] == answers
            assert bandit.convert(answers[3]) is lc.Verdict.DUPLICATE
            assert bandit.convert(answers[4]) is lc.Verdict.ACCEPTED
            assert bandit.stats().rounds == 20


@pytest.mark.parametrize("way", ["into the database", "into the file"])
def test_a_copy_onto_a_store_with_bandits_is_refused_and_changes_nothing(
    database: str, tmp_path: Path, way: str
) -> None:
    file = tmp_path / "shop.db"
    for store, rounds in ((file, 1), (database, 2)):
        with lc.open(store, name="offers", dim=2, window=100) as bandit:
            for _ in range(rounds):
                bandit.decide([[0.6, 0.0]])
    ends = (str(file), database) if way == "into the database" else (database, str(file))
    refused = CliRunner().invoke(app, ["store", "copy", *ends])
    assert refused.exit_code in (1, 2), refused.output
    for store, rounds in ((file, 1), (database, 2)):
        with lc.open(store, name="offers") as bandit:
            assert bandit.stats().rounds == rounds
