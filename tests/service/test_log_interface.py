"""The store over another log than SQLite's: the interface has everything that it needs."""

from pathlib import Path

import numpy as np
import pytest
from fake_clocks import FakeClocks, state_of, unit_rows
from memory_log import MemoryLog

from latecomer.errors import ConflictError, StoreError
from latecomer.service.bandit.registry import Registry
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, Revocation
from latecomer.service.storage.clock import StoreClock
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay

SPEC = BanditSpec(dim=2, window="7d", policy="OTFLinTS", parameters={"seed": 1})


def memory_store() -> Store:
    return Store(MemoryLog(), Registry({}), clock=StoreClock(FakeClocks(), latest=0))


def run_events(store: Store) -> list[object]:
    """Create a bandit, decide, convert, revoke and repeat requests; return the answers without decision ids."""
    generator = np.random.default_rng(3)
    seen: list[object] = []
    store.create("shop", SPEC)
    for i in range(60):
        actions = unit_rows(generator, 3, 2)
        answer, ticket = store.decide("shop", actions, ["a", "b", "c"] if i % 2 else None, request_id=f"r{i}")
        assert store.decide("shop", actions, ["a", "b", "c"] if i % 2 else None, request_id=f"r{i}")[0] == answer
        verdicts = list(store.convert("shop", [Conversion(answer.decision_id, 0.5), Conversion("unknown")])[0])
        if i % 5 == 0:
            verdicts += store.revoke("shop", [Revocation(answer.decision_id)])[0]
        store.wait(ticket)
        seen.append((answer.index, answer.action_id, answer.round, answer.score, answer.expires_at, verdicts))
    return seen


def test_store_over_a_log_in_memory_gives_the_bits_of_sqlite(path: Path) -> None:
    memory = memory_store()
    with Store.open(path, clock=FakeClocks()) as sqlite:
        assert run_events(memory) == run_events(sqlite)
        assert state_of(memory, "shop") == state_of(sqlite, "shop")
        assert memory.health.failure is None


def test_replay_over_a_log_in_memory_knows_ids_and_requests() -> None:
    store, actions = memory_store(), np.eye(2)
    store.create("shop", SPEC)
    answers = [store.decide("shop", actions, request_id=f"r{i}")[0] for i in range(20)]
    assert replay(store, "shop", "copy").rounds == 20
    assert store.decide("copy", actions, request_id="r7")[0].decision_id == answers[7].decision_id
    with pytest.raises(ConflictError, match="another body"):
        store.decide("copy", actions[:1], request_id="r7")
    assert store.registry.get("copy").policy.V.tobytes() == store.registry.get("shop").policy.V.tobytes()
    store.delete("shop")
    assert [info.name for info in store.list_bandits()] == ["copy"]


def test_store_refuses_changes_while_the_log_fails() -> None:
    log = MemoryLog()
    store = Store(log, Registry({}), clock=StoreClock(FakeClocks(), latest=0))
    store.create("shop", SPEC)
    log.failure = "the log cannot be written"
    with pytest.raises(StoreError, match="the log cannot be written"):
        store.decide("shop", np.eye(2))
    assert store.stats("shop").rounds == 0
