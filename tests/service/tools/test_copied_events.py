"""Grace, subjects, deferred decisions and left-out actions, in a copied store and in an exported log."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from fake_clocks import HOUR, FakeClocks, state_of

import latecomer as lc
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Activation, Conversion, DecisionAnswer, Verdict
from latecomer.service.store import Store
from latecomer.service.tools.copy_store import copy_store
from latecomer.service.tools.export import export
from latecomer.timestamps import to_datetime

ROWS, IDS = np.array([[0.9, 0.0], [0.0, 0.9], [0.6, 0.6]]), ["a", "b", "c"]
SPEC = BanditSpec(dim=2, window="10h", grace="2h", parameters={"seed": 4})


def at_work(path: Path, machine: FakeClocks) -> Store:
    return Store.open(path, clock=machine, snapshot_every=4)


def decide(store: Store, **options: Any) -> DecisionAnswer:
    return store.decide("shop", ROWS, IDS, **options)[0]


@pytest.fixture
def machine() -> FakeClocks:
    return FakeClocks(wall=1_700_000_000_000_000)  # before now: a copy to a database waits for its time


@pytest.fixture
def answers(path: Path, machine: FakeClocks) -> dict[str, DecisionAnswer]:
    """Fill a store with events of every kind; return the decisions by what becomes of them."""
    with at_work(path, machine) as store:
        store.create("shop", SPEC)
        found = {"straggler": decide(store, subject="ann"), "plain": decide(store, request_id="p")}
        found["shown"], found["waiting"] = (decide(store, deferred=True, subject=name) for name in ("bob", "eve"))
        found["left out"] = decide(store, exclude=["a"], request_id="x")
        assert store.activate("shop", [Activation(found["shown"].decision_id)])[0] == [Verdict.ACCEPTED]
        machine.advance(11 * HOUR)
        found["late"] = decide(store, pin=2, subject="eve")  # it closes the others, which are in their grace
        occurred = to_datetime(machine.wall() - 2 * HOUR)
        conversions = [
            Conversion(found["straggler"].decision_id, 0.5, occurred),
            Conversion(subject="bob", occurred_at=occurred),
        ]
        assert store.convert("shop", conversions)[0] == [Verdict.ACCEPTED, Verdict.ACCEPTED]
    return found


def test_a_copy_goes_on_where_the_store_stopped(
    path: Path, tmp_path: Path, machine: FakeClocks, answers: dict[str, DecisionAnswer], database: str
) -> None:
    copy_store(path, database)
    copy_store(database, tmp_path / "copy.db")
    with at_work(path, machine) as store, at_work(tmp_path / "copy.db", machine) as copy:
        assert state_of(copy, "shop") == state_of(store, "shop")
        occurred = to_datetime(machine.wall() - 2 * HOUR)
        for one in (store, copy):
            assert decide(one, exclude=["a"], request_id="x") == answers["left out"]
            assert one.convert("shop", [Conversion(answers["plain"].decision_id, occurred_at=occurred)])[0] == [
                Verdict.ACCEPTED
            ], "its grace is not over"
            verdicts, _ = one.convert(
                "shop", [Conversion(subject="eve"), Conversion(subject="ann", occurred_at=occurred)]
            )
            assert verdicts == [Verdict.ACCEPTED, Verdict.DUPLICATE]
            assert one.activate("shop", [Activation(answers["waiting"].decision_id)])[0] == [Verdict.LATE]
            decide(one)
        assert state_of(copy, "shop") == state_of(store, "shop")


def test_a_waiting_decision_is_activated_in_a_copy(path: Path, tmp_path: Path, machine: FakeClocks) -> None:
    with at_work(path, machine) as store:
        store.create("shop", SPEC)
        waiting = decide(store, deferred=True, subject="eve", request_id="w", exclude=[1])
    copy_store(path, tmp_path / "copy.db")
    with at_work(tmp_path / "copy.db", machine) as copy:
        assert decide(copy, deferred=True, subject="eve", request_id="w", exclude=[1]) == waiting
        assert copy.activate("shop", [Activation(waiting.decision_id)])[0] == [Verdict.ACCEPTED]
        assert copy.convert("shop", [Conversion(subject="eve")])[0] == [Verdict.ACCEPTED]


def test_an_export_has_the_decisions_that_counted_and_an_import_learns_them(
    path: Path, tmp_path: Path, answers: dict[str, DecisionAnswer]
) -> None:
    frame = pl.concat([frame for table, frame in export(path, "shop") if table == "decisions"])
    assert len(frame) == 5  # all but the one that waits
    assert frame["converted_at"].is_not_null().to_list() == [True, False, False, True, False]
    assert frame["value"].drop_nulls().to_list() == [0.5, 1.0]
    assert frame["action_ids"].to_list() == [IDS, IDS, ["b", "c"], IDS, ["c"]]
    for row in frame.iter_rows(named=True):
        assert row["action_ids"][row["chosen"]] == row["action_id"]
        np.testing.assert_allclose(row["actions"][row["chosen"]], row["chosen_action"], atol=1e-7)
    assert frame["propensity"][4] == 1.0
    frame.write_parquet(tmp_path / "log.parquet")
    with lc.open(tmp_path / "new.db", name="heir", dim=2, window="10h", grace="2h") as heir:
        report = heir.import_log(lc.read_log(tmp_path / "log.parquet"))
        assert report.decisions == 5
        assert heir.stats().conversions["accepted"] == 2
        learnt = heir._store.read_bandit("heir").policy
    with Store.open(path, clock=FakeClocks(wall=1_700_000_000_000_000 + 12 * HOUR)) as store:
        np.testing.assert_allclose(learnt.V, store.read_bandit("shop").policy.V, atol=1e-6)
        np.testing.assert_allclose(learnt.B, store.read_bandit("shop").policy.B, atol=1e-6)
