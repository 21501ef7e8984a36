"""A log of every kind of event that ends early, or has a damaged row: a first part of it is recovered, or none is."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import FakeClocks

from latecomer.service.bandit import events
from latecomer.service.bandit.apply import apply_payload
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit_spec import BanditSpec, ChallengerSpec, RewardSpec
from latecomer.service.messages import Activation, Conversion, DecisionAnswer, Revocation, StageReport
from latecomer.service.storage.recovery import read_descriptors
from latecomer.service.storage.rows import GENESIS, Row, key_of, read_rows
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store

ROWS, IDS = np.array([[0.9, 0.0], [0.0, 0.9], [0.6, 0.6]]), ["a", "b", "c"]
SPECS = {
    "contested": BanditSpec(
        dim=2,
        window="7d",
        parameters={"seed": 1},
        reward=RewardSpec(scale=10.0),
        challenger=ChallengerSpec(policy="LinUCB", share=0.5),
    ),
    "limited": BanditSpec(
        dim=2,
        window="7d",
        policy="LinUCB",
        parameters={"floor": 0.1, "ceiling": 0.9, "limits": {"a": {"floor": 0.2}, "b": {"ceiling": 0.3}}},
    ),
}


def play(store: Store, name: str) -> None:
    """Every kind of event, each in a row of its own."""

    def done(made: tuple[Any, Any]) -> Any:
        store.wait(made[1])
        return made[0]

    def decide(**options: Any) -> DecisionAnswer:
        answer: DecisionAnswer = done(store.decide(name, ROWS, IDS, **options))
        return answer

    store.create(name, SPECS[name])
    done(store.put_actions(name, dict(zip(IDS, ROWS, strict=True))))
    first, later = decide(subject="ann", request_id="x"), decide(exclude=["a"], deferred=True)
    done(store.activate(name, [Activation(later.decision_id)]))
    if name == "contested":
        decide(k=2)
    done(store.report_stages(name, [StageReport(first.decision_id, "click")]))
    done(store.convert(name, [Conversion(None, 1.0, subject="ann", conversion_id="o1")]))
    done(store.convert(name, [Conversion(later.decision_id, 0.5)]))
    done(store.freeze(name, True))
    decide(pin="b")
    done(store.freeze(name, False))
    done(store.revoke(name, [Revocation(first.decision_id, None, "o1")]))
    done(store.put_actions(name, {}, ["c"]))
    decide()


def state_of(bandit: Bandit) -> list[Any]:
    """Return everything that the next decisions of its policies depend on, and what was counted."""
    states = [(p.rounds, p.V.tobytes(), p.B.tobytes(), str(p.rng.state()), p.is_frozen) for p in bandit.policies]
    bandit.count_notes()
    return [*states, bandit.stats(), bandit.catalogue.version]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store of both bandits, without snapshots."""
    path = tmp_path_factory.mktemp("events") / "store.db"
    with Store.open(path, clock=FakeClocks()) as store:
        for name in SPECS:
            play(store, name)
    connection = connect(path, write=True)
    connection.execute("DELETE FROM snapshot; DELETE FROM snapshot_part")
    connection.close()
    return path


def read_log(path: Path, name: str) -> tuple[Any, list[Row]]:
    connection = connect(path, write=False)
    (descriptor,) = (found for found in read_descriptors(connection, {})[0].values() if found.name == name)
    rows = list(read_rows(connection, descriptor.number, after=0, parent=GENESIS))
    connection.close()
    return descriptor, rows


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", list(SPECS))
def test_a_log_that_ends_early_has_the_state_of_its_events(
    original: Path, tmp_path: Path, name: str, stride: int
) -> None:
    descriptor, rows = read_log(original, name)
    kinds = set(np.concatenate([events.Payload(row.payload, 2).kinds for row in rows]).tolist())
    assert len(kinds) > 8
    assert len(rows) > 10
    bandit = Bandit(descriptor, descriptor.make_policy())
    for place, row in enumerate(rows):
        apply_payload(bandit, row.payload, row.stamp)
        if (place + 1) % stride and place + 1 < len(rows):
            continue
        path = tmp_path / f"{place}.db"
        shutil.copy(original, path)
        connection = connect(path, write=True)
        after = key_of(descriptor.number, row.seq), key_of(descriptor.number + 1, 0)
        connection.execute("DELETE FROM log WHERE key > ? AND key < ?", after)
        connection.close()
        with Store.open(path, clock=FakeClocks()) as store:
            assert state_of(store.registry.bandits[name]) == state_of(bandit)
            store.wait(store.decide(name, ROWS, IDS)[1])


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", list(SPECS))
def test_a_damaged_row_of_any_kind_is_named(original: Path, tmp_path: Path, name: str, stride: int) -> None:
    descriptor, rows = read_log(original, name)
    generator, (other,) = np.random.default_rng(0), set(SPECS) - {name}
    for row in rows[::stride]:
        path, payload = tmp_path / f"{row.seq}.db", bytearray(row.payload)
        payload[generator.integers(len(payload))] ^= int(generator.integers(1, 256))
        shutil.copy(original, path)
        connection = connect(path, write=True)
        key = key_of(descriptor.number, row.seq)
        connection.execute("UPDATE log SET payload = ? WHERE key = ?", (bytes(payload), key))
        connection.close()
        with Store.open(path, clock=FakeClocks()) as store:
            named = f"row {row.seq} of chain {descriptor.number} of the log is damaged"
            assert named in store.quarantined[name]
            store.wait(store.decide(other, ROWS, IDS)[1])
