"""Bad input and interrupted calls leave a store that can be opened, or none."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_internals import sqlite_log

import latecomer as lc
from latecomer.errors import ConflictError, InputError, StoreError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.registry import Registry
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

ROWS = np.eye(2)


@pytest.mark.parametrize("ids", [{"a": 1, "b": 2}, {"a": 1, "b": 2}.keys(), {"a", "b"}, "ab", np.array(["a", "b"])])
def test_ids_that_are_no_list_are_refused_before_any_change(path: Path, ids: Any) -> None:
    with lc.open(path, dim=2, window=100) as bandit:
        bandit.decide(ROWS)
        with pytest.raises(InputError, match=r"ids must be a list of texts.*make it a list"):
            bandit.decide(ROWS, ids=ids)
        assert bandit.decide(ROWS, ids=("a", "b")).round == 2
    with lc.open(path) as bandit:
        assert bandit.decide(ROWS).round == 3


def test_store_refuses_everything_after_an_unlogged_decision(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lc.open(path, dim=2, window=100) as bandit:
        kept = bandit.decide(ROWS)
        with monkeypatch.context() as broken:
            broken.setattr(Bandit, "find_expiry", lambda *_, **__: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                bandit.decide(ROWS)
        with pytest.raises(StoreError, match=r"could not be logged .*ZeroDivisionError.*: open the store again"):
            bandit.decide(ROWS)
        with pytest.raises(StoreError, match="open the store again"):
            bandit.convert(kept.decision_id)
    with lc.open(path) as bandit:
        assert bandit.stats().rounds == 1
        assert bandit.convert(kept.decision_id) is lc.Verdict.ACCEPTED
        assert bandit.decide(ROWS).round == 2


def test_store_refuses_everything_after_an_unlogged_report(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens between the policy's move and the log, were it an interrupt."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with lc.open(path, dim=2, window=100) as bandit:
        kept = bandit.decide(ROWS)
        with monkeypatch.context() as broken:
            broken.setattr(sqlite_log(bandit._store).writer, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                bandit.convert(kept.decision_id)
        with pytest.raises(StoreError, match=r"could not be logged .*KeyboardInterrupt.*: open the store again"):
            bandit.decide(ROWS)
    with lc.open(path) as bandit:
        assert bandit.stats().conversions["accepted"] == 0
        assert bandit.convert(kept.decision_id) is lc.Verdict.ACCEPTED


def test_bad_input_does_not_close_the_store(path: Path) -> None:
    with lc.open(path, dim=2, window=100) as bandit:
        with pytest.raises(InputError, match="decision_id must be a text"):
            bandit.convert(5)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="actions must be finite"):
            bandit.decide(ROWS * np.nan)
        assert bandit.decide(ROWS).round == 1


def test_window_may_be_a_timedelta(path: Path) -> None:
    with lc.open(path, dim=2, window=timedelta(days=7)) as bandit:
        bandit.decide(ROWS)
    with lc.open(path, dim=2, window="7d") as bandit:  # the same, and the log tells it again
        assert bandit.decide(ROWS).round == 2
    with pytest.raises(InputError, match="window must be whole seconds"):
        lc.open(path, name="other", dim=2, window=timedelta(milliseconds=1))


@pytest.mark.parametrize(
    "spec",
    [
        {"dim": np.int64(2)},
        {"window": np.int64(5)},
        {"window": 5.0},
        {"window": True},
        {"policy": "OTFLinUCB", "parameters": {"exploration": np.float64(0.5), "ridge": np.float32(1)}},
    ],
)
def test_specification_that_cannot_be_read_back_is_refused(path: Path, spec: dict[str, Any]) -> None:
    with Store.open(path) as store:
        store.create("there", BanditSpec(dim=2, window=5))
        with pytest.raises(InputError, match="must be"):
            store.create("b", BanditSpec(**{"dim": 2, "window": 5, **spec}))
        assert [info.name for info in store.list_bandits()] == ["there"]
        assert store.create("b", BanditSpec(dim=2, window=5))[1]
    with Store.open(path) as store:
        assert [info.name for info in store.list_bandits()] == ["b", "there"]


def test_another_specification_is_a_conflict(path: Path) -> None:
    plain, tuned = BanditSpec(dim=2, window=5), BanditSpec(dim=2, window=5, parameters={"exploration": 0.9})
    with Store.open(path) as store:
        for name, mine, other in (("plain", plain, tuned), ("tuned", tuned, plain)):
            assert store.create(name, mine)[1]
            assert not store.create(name, mine)[1]
            with pytest.raises(ConflictError):
                store.create(name, other)
        full = store.info("tuned")
        again = BanditSpec(dim=full.dim, window=full.window, policy=full.policy, parameters=full.parameters)
        assert not store.create("tuned", again)[1]  # what it is, in full, is the same too
    with Store.open(path) as store, pytest.raises(ConflictError):
        store.create("tuned", plain)


def test_interrupted_replay_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lc.open(path, name="old", dim=2, window=100) as bandit:
        for _ in range(50):
            bandit.decide(ROWS)
    with monkeypatch.context() as broken, Store.open(path, retention="forever") as store:
        broken.setattr(Registry, "finish", lambda *_: 1 // 0)  # all rows are written, but not the new name
        with pytest.raises(ZeroDivisionError):
            replay(store, "old", "new", window=10)
    assert "old" in "".join(verify(path))
    assert "new" not in "".join(verify(path))
    with Store.open(path, retention="forever") as store:
        assert [info.name for info in store.list_bandits()] == ["old"]
        assert replay(store, "old", "new", window=10).rounds == 50
        assert [info.name for info in store.list_bandits()] == ["new", "old"]
    with Store.open(path, retention="forever") as store:
        assert [info.name for info in store.list_bandits()] == ["new", "old"]
        assert store.decide("new", ROWS)[0].round == 51
    assert "new: rows" in "".join(verify(path))
