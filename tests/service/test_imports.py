"""Imports: a log of others' decisions, batch by batch, into a bandit; killed, repeated, over HTTP."""

import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from commands import Command
from offered_log import make_table
from servers import run_server, wait_until
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.service.import_batches import make_import_batches
from latecomer.service.messages import ImportBatch, ImportedConversions
from latecomer.service.store import Store

SPEC: dict[str, Any] = {"dim": 3, "window": "2h", "parameters": {"seed": 5}}
QUICK: dict[str, Any] = {**SPEC, "policy": "OTFLinTS"}
"""Of a policy that learns in a tenth of the time, for tests of the import alone."""
ROWS = 520
"""Two batches."""


def describe(policy: Any) -> dict[str, Any]:
    """Return what a policy keeps, but for the place of its open rounds in memory."""
    fields = {name: policy.state.record[name].tolist() for name in policy.state.saved_fields() if name != "head"}
    return {**fields, "generator": policy.rng.state()}


def read_state(path: Path, name: str = "shop") -> tuple[dict[str, Any], Any]:
    with Store.open(path) as store:
        bandit = store.registry.bandits[name]
        return describe(bandit.policy), bandit.count()


@pytest.fixture
def log() -> lc.DecisionLog:
    return lc.read_log(make_table(ROWS))


def test_an_import_leaves_the_policy_as_learning_does(path: Path, log: lc.DecisionLog) -> None:
    with lc.open(path, name="shop", **SPEC) as bandit:
        seen: list[int] = []
        report = bandit.import_log(log, advance=seen.append)
    assert seen == [500, 20]
    learnt = lc.recommended(3, "2h", seed=5, floor=0.02, draws=64, grace="1d")
    expected = learnt.learn(log)
    assert (report.decisions, report.known, report.conversions) == (ROWS, 0, expected.conversions)
    assert read_state(path)[0] == describe(learnt)


def test_an_import_that_is_repeated_changes_nothing(path: Path, log: lc.DecisionLog) -> None:
    with lc.open(path, name="shop", **QUICK) as bandit:
        bandit.import_log(log)
    before = read_state(path)
    with lc.open(path, name="shop") as bandit:
        report = bandit.import_log(log)
        assert (report.decisions, report.known) == (ROWS, ROWS)
        assert set(report.conversions.values()) == {0}
    assert read_state(path) == before


def test_a_bandit_goes_on_after_an_import_and_an_earlier_log_is_refused(path: Path, log: lc.DecisionLog) -> None:
    with lc.open(path, name="shop", **QUICK) as bandit:
        bandit.import_log(log)
        answer = bandit.decide(np.eye(3))
        assert answer.round == ROWS + 1
        assert bandit.convert(answer) is lc.Verdict.ACCEPTED
        assert bandit.import_log(log).known == ROWS
        with pytest.raises(lc.errors.ConflictError, match="before the decisions that follow"):
            bandit.import_log(log, import_id="another")
        assert bandit.stats().rounds == ROWS + 1


@pytest.mark.parametrize("rows", [1_200, pytest.param(3_000, marks=pytest.mark.soak)])
def test_an_import_that_is_killed_goes_on_and_ends_as_one_run(tmp_path: Path, rows: int) -> None:
    table = make_table(rows)
    table.write_parquet(tmp_path / "log.parquet")
    killed, whole = tmp_path / "killed.db", tmp_path / "whole.db"
    arguments = ["import", "log.parquet", "--bandit", "shop", "--window", "2h", "--policy", "OTFLinUCB"]
    runs = 0
    for delay in (0.0, 0.05, 0.15, 60.0):
        command = Command(*arguments, "--store", "killed.db", folder=tmp_path, LATECOMER_COMPILE="never")
        assert wait_until(lambda: killed.exists() or not command.is_running())  # noqa: B023 - it is called at once
        with suppress(subprocess.TimeoutExpired):
            command.process.wait(delay)
        command.end()
        runs += command.process.returncode == -signal.SIGKILL
    assert command.process.returncode == 0, command.stderr
    assert runs >= 2
    with lc.open(whole, name="shop", dim=3, window="2h", policy="OTFLinUCB") as bandit:
        bandit.import_log(lc.read_log(table))
    ours, theirs = read_state(killed), read_state(whole)
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]


def test_a_server_imports_as_a_store_does(tmp_path: Path, log: lc.DecisionLog) -> None:
    path, other = tmp_path / "served.db", tmp_path / "other.db"
    with run_server(path) as server, lc.Client(server.url) as client:
        client.create("shop", **QUICK)
        assert client.import_log("shop", log).decisions == ROWS
        assert client.import_log("shop", log).known == ROWS
        assert client.stats("shop").rounds == ROWS
    with lc.open(other, name="shop", **QUICK) as bandit:
        bandit.import_log(log)
    assert read_state(path)[0] == read_state(other)[0]


BATCH = ImportBatch(import_id="i", decided_at=[10.0, 20.0], actions=[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"import_id": ""}, "import_id"),
        ({"decided_at": []}, "decided_at"),
        ({"decided_at": [20.0, 10.0]}, "decided_at"),
        ({"decided_at": [10.0, 1e13]}, "decided_at"),
        ({"decided_at": [10.0, 4e9]}, "decided_at"),
        ({"actions": [[0.1, 0.2, 0.3]]}, "actions"),
        ({"actions": [[0.1, 0.2], [0.1, 0.2]]}, "actions"),
        ({"actions": [[3.0, 0.0, 0.0]] * 2}, "actions"),
        ({"after": -1}, "after"),
        ({"summaries": [[1]]}, "summaries"),
        ({"after": 2}, "first_round"),
        ({"conversions": ImportedConversions([1], [4e9], [1.0])}, "conversions"),
        ({"conversions": ImportedConversions([3], [30.0], [1.0])}, "conversions"),
        ({"conversions": ImportedConversions([1], [30.0], [2.0])}, "conversions"),
        ({"conversions": ImportedConversions([1], [], [])}, "conversions"),
    ],
)
def test_a_wrong_batch_is_refused_and_changes_nothing(path: Path, change: dict[str, Any], field: str) -> None:
    with lc.open(path, name="shop", **QUICK) as bandit:
        store = bandit._store
        with pytest.raises(lc.errors.InputError) as caught:
            store.import_batch("shop", msgspec.structs.replace(BATCH, **change))
        assert caught.value.field == field
        assert bandit.stats().rounds == 0
        with pytest.raises(lc.errors.ConflictError, match="in their order"):
            store.import_batch("shop", msgspec.structs.replace(BATCH, after=5, first_round=1))
        assert store.import_batch("shop", BATCH)[0].first_round == 1
        with pytest.raises(lc.errors.ConflictError, match="used for another log"):
            store.import_batch("shop", msgspec.structs.replace(BATCH, decided_at=[10.0, 21.0]))
        assert bandit.stats().rounds == 2


def test_batches_of_a_log_are_the_same_again(log: lc.DecisionLog) -> None:
    first, second = (list(make_import_batches(log, 3, import_id="x", rows=100)) for _ in range(2))
    assert first == second
    assert [batch.after for batch in first] == list(range(0, ROWS, 100))
    assert sum(len(batch.conversions.decisions) for batch in first) == log.conversions


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    make_table(50).with_columns(pl.col("decided_at").shuffle(seed=1)).write_parquet(tmp_path / "dirty.parquet")
    arguments = ["import", str(tmp_path / "dirty.parquet"), "--store", str(tmp_path / "s.db"), "--bandit", "shop"]
    missing = CliRunner().invoke(app, arguments)
    assert missing.exit_code != 0
    result = CliRunner().invoke(app, [*arguments, "--window", "2h"])
    assert result.exit_code == 0, result.output
    assert "decisions imported, 0 were there before" in result.output
    assert "skipped" in result.output


def test_actions_are_checked_as_the_policy_checks_them(path: Path) -> None:
    """A row whose norm rounds to the limit in one way and past it in another is refused before anything changes."""
    rng = np.random.default_rng(0)
    policy = lc.Greedy(64, 10)
    rows = (row / np.linalg.norm(row) * (1.0 + 1e-6) for row in rng.standard_normal((20_000, 64)))
    row = next(row for row in rows if np.linalg.norm(row) <= 1.0 + 1e-6 and not policy.state.is_admissible(row[None]))
    batch = ImportBatch(
        import_id="i",
        decided_at=[10.0, 20.0, 30.0],
        actions=[[0.5] + [0.0] * 63, [0.5] + [0.0] * 63, row.tolist()],
        conversions=ImportedConversions([1], [25.0], [1.0]),
    )
    with lc.open(path, name="shop", dim=64, window=50) as bandit:
        with pytest.raises(lc.errors.InputError, match="norm at most 1"):
            bandit._store.import_batch("shop", batch)
        assert bandit.decide(np.eye(64)[:2]).round == 1
    with lc.open(path, name="shop") as bandit:
        assert bandit.stats().rounds == 1


def test_a_mistake_late_in_a_log_imports_nothing(path: Path) -> None:
    table = make_table(ROWS).with_columns(value=pl.when(pl.int_range(pl.len()) == ROWS - 5).then(20.0).otherwise(0.5))
    table = table.with_columns(converted_at=pl.col("decided_at") + 1.0)
    with lc.open(path, name="shop", **QUICK) as bandit:
        with pytest.raises(lc.errors.InputError, match="as scale"):
            bandit.import_log(lc.read_log(table))
        assert bandit.stats().rounds == 0
        assert bandit.import_log(lc.read_log(table), scale=20.0).decisions == ROWS
    policy = lc.Greedy(3, "2h")
    with pytest.raises(lc.errors.InputError, match="as scale"):
        policy.learn(lc.read_log(table))
    assert policy.rounds == 0


def test_a_bandit_is_created_with_the_encoder_of_its_import(tmp_path: Path) -> None:
    encoder = lc.Encoder(dim=8, actions=["action"])
    encoder.fit([{"action": item} for item in "ab"])
    encoder.save(tmp_path / "encoder.json")
    rows = {"decided_at": [10.0, 20.0], "action": ["a", "b"], "converted_at": [15.0, None]}
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    arguments = ["import", str(tmp_path / "log.parquet"), "--store", str(tmp_path / "s.db"), "--bandit", "shop"]
    result = CliRunner().invoke(app, [*arguments, "--window", "2h", "--encoder", str(tmp_path / "encoder.json")])
    assert result.exit_code == 0, result.output
    with Store.open(tmp_path / "s.db") as store:
        assert store.info("shop").encoder == encoder.spec
    missing = CliRunner().invoke(app, [*arguments, "--encoder", str(tmp_path / "nope.json")])
    assert missing.exit_code == 2


def test_an_import_warns_where_most_conversions_are_late(tmp_path: Path) -> None:
    make_table(60).with_columns(converted_at=pl.col("decided_at") + 3000.0).write_parquet(tmp_path / "log.parquet")
    for window, expected in (
        ("7", "--window 7 is 7 rounds; a time has a unit, such as 7d"),
        ("30 min", "shorter than"),
    ):
        arguments = ["--bandit", "shop", "--window", window, "--policy", "OTFLinUCB"]
        where = [str(tmp_path / "log.parquet"), "--store", str(tmp_path / f"{len(window)}.db")]
        ended = CliRunner().invoke(app, ["import", *where, *arguments])
        assert ended.exit_code == 0
        assert len(ended.stderr.splitlines()) == 1
        assert expected in ended.stderr
    ended = CliRunner().invoke(app, ["import", *where[:2], str(tmp_path / "long.db"), *arguments[:2], "--window", "2h"])
    assert (ended.exit_code, ended.stderr) == (0, "")
