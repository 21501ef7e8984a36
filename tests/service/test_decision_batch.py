"""Batches of decisions in a process: on a file and on PostgreSQL, as many calls of `decide` would be made."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.decision_batch import decide_batch
from latecomer.service.messages import DecisionAnswer
from latecomer.service.store import Store

ROWS = np.eye(2)
SPEC: dict[str, Any] = {"dim": 2, "window": 100, "parameters": {"seed": 3}}


@pytest.fixture(params=["file", "database"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "a.db")
    found: str = request.getfixturevalue("database")
    return found


def test_a_batch_decides_as_single_calls_do(address: str) -> None:
    with lc.open(address, name="many", **SPEC) as bandit:
        answers = bandit.decide_many([{"actions": ROWS, "ids": ["a", "b"], "request_id": f"r{i}"} for i in range(40)])
        assert bandit.decide(ROWS, ids=["a", "b"], request_id="r7") == answers[7]
    with lc.open(address, name="single", **SPEC) as bandit:
        singly = [bandit.decide(ROWS, ids=["a", "b"], request_id=f"r{i}") for i in range(40)]
    for one, other in zip(answers, singly, strict=True):
        assert isinstance(one, DecisionAnswer)
        assert (one.round, one.index, one.score, one.propensity) == (
            other.round,
            other.index,
            other.score,
            other.propensity,
        )
    with lc.open(address, name="many") as bandit:  # after a restart
        assert bandit.decide_many([{"actions": ROWS, "ids": ["a", "b"], "request_id": "r9"}]) == [answers[9]]
        assert bandit.stats().rounds == 40


def test_an_error_keeps_its_place_and_changes_nothing(address: str) -> None:
    with lc.open(address, **SPEC) as bandit:
        answers = bandit.decide_many(
            [
                {"actions": ROWS, "request_id": "x"},
                {"actions": [[2.0, 0.0]]},
                {"actions": ROWS[:1], "request_id": "x"},
                {"actions": ROWS, "request_id": "x"},
                {"action": ROWS},
                {"actions": {"a": {"price": 3.0}}},
                {"actions": ROWS},
            ]
        )
        kinds = [type(answer) for answer in answers]
        assert kinds == [
            DecisionAnswer, InputError, ConflictError, DecisionAnswer, InputError, InputError, DecisionAnswer
        ]  # fmt: skip
        assert answers[3] == answers[0]
        assert bandit.stats().rounds == 2
        for wrong in ([], [{"actions": ROWS}] * 1001):
            with pytest.raises(InputError, match="a batch must have 1 to 1,000 requests"):
                bandit.decide_many(wrong)


def test_a_batch_is_one_commit(tmp_path: Path) -> None:
    with lc.open(tmp_path / "a.db", dim=2, window=9, policy="Uniform") as bandit:
        store: Any = bandit._store
        before = store.health.commits
        bandit.decide_many([{"actions": ROWS}] * 300)
        assert store.health.commits == before + 1


def test_a_batch_that_makes_a_snapshot_due_is_repeated_after_a_crash(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "b.db"
    request: dict[str, Any] = {"actions": np.eye(2), "request_id": "x"}
    with Store.open(path, snapshot_every=4) as store:
        store.create("shop", BanditSpec(dim=2, window="7d", policy="OTFLinUCB"))
        store.wait(store.decide("shop", np.eye(2), request_id="y")[1])
        (*_, made), tickets = decide_batch(store, "shop", [{"actions": ROWS}, {"actions": ROWS}, request])
        for ticket in tickets:
            store.wait(ticket)
        store.wait(store.decide("shop", np.eye(2))[1])  # in the WAL after the snapshot
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    for kept in (copy, path):
        with Store.open(kept) as store:
            assert decide_batch(store, "shop", [request])[0] == [made]
