"""Decision ids: the same through restarts, snapshots, replays and exports; and no more secrets than the log needs."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from fake_clocks import HOUR, FakeClocks
from hypothesis import given
from hypothesis import strategies as st

from latecomer.service.bandit.decision_ids import DecisionIds
from latecomer.service.bandit.events import SECRET, Payload
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.storage.rows import GENESIS, read_rows
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store
from latecomer.service.tools.export import export
from latecomer.service.tools.replay import replay

OFFERS = np.eye(2)


def opened(path: Path, machine: FakeClocks, *, openings: int, each: int, every: int, retention: str) -> dict[int, str]:
    """Decisions over many openings of the store, one an hour: their ids by their rounds."""
    ids: dict[int, str] = {}
    for _ in range(openings):
        with Store.open(path, clock=machine, snapshot_every=every, retention=retention) as store:
            store.create("shop", BanditSpec(dim=2, window="2d", policy="OTFLinUCB"))
            for _ in range(each):
                answer, ticket = store.decide("shop", OFFERS, request_id=f"r{len(ids)}")
                ids[answer.round] = answer.decision_id
                store.wait(ticket)
                machine.advance(HOUR)
    return ids


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, dict[int, str]]:
    """A closed store that was pruned, the time on its clock, and the ids of all 240 decisions."""
    path, machine = tmp_path_factory.mktemp("pruned") / "shop.db", FakeClocks()
    ids = opened(path, machine, openings=40, each=6, every=5, retention="1d")
    return path, machine.elapsed, ids


@pytest.fixture
def reopened(pruned: tuple[Path, int, dict[int, str]], tmp_path: Path) -> tuple[Path, FakeClocks, dict[int, str]]:
    """A copy of it, with a clock that goes on."""
    (path, elapsed, ids), machine = pruned, FakeClocks()
    machine.advance(elapsed)
    return Path(shutil.copy(path, tmp_path)), machine, ids


def exported(path: Path, name: str) -> dict[int, str]:
    frames = [frame for table, frame in export(path, name) if table == "decisions"]
    return dict(row for frame in frames for row in frame.select("round", "decision_id").iter_rows())


def test_each_opening_begins_a_secret_at_its_first_decision(tmp_path: Path) -> None:
    path, machine = tmp_path / "shop.db", FakeClocks()
    ids = opened(path, machine, openings=4, each=3, every=5, retention="forever")
    Store.open(path, clock=machine).close()
    with Store.open(path, clock=machine) as store:
        assert store.convert("shop", [Conversion(ids[12])])[0][0].value == "accepted"
    connection = connect(path, write=False)
    payload = b"".join(row.payload for row in read_rows(connection, 1, after=0, parent=GENESIS))
    connection.close()
    parsed = Payload(payload, 2)
    assert parsed.records(SECRET)["round"].tolist() == [1, 4, 7, 10]
    assert len(set(parsed.records(SECRET)["secret"].tolist())) == 4


def test_decision_ids_agree_in_snapshots_log_and_export(tmp_path: Path) -> None:
    path, machine = tmp_path / "shop.db", FakeClocks()
    ids = opened(path, machine, openings=5, each=7, every=4, retention="forever")
    assert exported(path, "shop") == ids
    for statement in ("SELECT 1", "DELETE FROM snapshot"):
        connection = connect(path, write=True)
        connection.execute(statement)
        connection.close()
        with Store.open(path, clock=machine) as store:
            for round_, id_ in ids.items():
                assert store.decide("shop", OFFERS, request_id=f"r{round_ - 1}")[0].decision_id == id_
            assert {round_: store.registry.bandits["shop"].find_round(id_) for round_, id_ in ids.items()} == {
                round_: round_ for round_ in ids
            }


def test_pruning_drops_secrets_of_pruned_rounds(reopened: tuple[Path, FakeClocks, dict[int, str]]) -> None:
    path, machine, ids = reopened
    left = exported(path, "shop")
    assert 0 < len(left) < len(ids)
    assert left == {round_: ids[round_] for round_ in left}
    with Store.open(path, clock=machine) as store:
        bandit = store.registry.bandits["shop"]
        assert len(bandit.ids.known) < 30  # four days of 40 openings, two of them until the next snapshot
        (verdict,), _ = store.convert("shop", [Conversion(ids[1])])
        assert verdict.value == "unknown"
        (verdict,), _ = store.convert("shop", [Conversion(left[min(left)])])
        assert verdict.value == "late"
        assert bandit.find_round(ids[240]) == 240


def test_replayed_bandit_keeps_decision_ids(reopened: tuple[Path, FakeClocks, dict[int, str]]) -> None:
    """Of a pruned log too; and what the two decide afterwards is not mistaken for each other's."""
    path, machine, ids = reopened
    with Store.open(path, clock=machine, retention="forever") as store:
        rest = replay(store, "shop", "rest", partial=True, window="30d")
        replay(store, "rest", "third")
        skipped = 240 - rest.rounds
        assert skipped > 100
        mine = [store.decide("shop", OFFERS)[0].decision_id for _ in range(3)]
        for name in ("rest", "third"):
            theirs = [store.decide(name, OFFERS)[0].decision_id for _ in range(3)]
            reports = [Conversion(id_) for id_ in [*ids.values(), *mine, *theirs]]
            verdicts = [verdict.value for verdict in store.convert(name, reports)[0]]
            assert verdicts == ["unknown"] * skipped + ["accepted"] * rest.rounds + ["unknown"] * 3 + ["accepted"] * 3
    for name in ("rest", "third"):
        assert list(exported(path, name).values())[:-3] == list(ids.values())[skipped:]


@given(st.text(max_size=40))
def test_random_text_is_no_decision_id(text: str) -> None:
    ids = DecisionIds()
    assert ids.find_round(text) == 0
    ids.renew(1)
    assert ids.find_round(text) == 0
    assert ids.find_round(ids.id_of(7) + text) == (0 if text else 7)


@given(st.sets(st.integers(1, 60), min_size=1), st.integers(0, 70))
def test_forget_keeps_secrets_of_later_rounds(firsts: set[int], forgotten: int) -> None:
    ids = DecisionIds(skipped=1000)
    for first in sorted(firsts):
        ids.renew(first)
    before = {round_: ids.id_of(round_) for round_ in range(1, 80)}
    ids.forget(forgotten)
    assert all(ids.id_of(round_) == before[round_] for round_ in range(forgotten + 1, 80))
    assert len([first for first, _ in ids.known if first <= forgotten + 1]) <= 1
    assert all(id_ == "" or int(id_.split("-")[0], 16) == round_ + 1000 for round_, id_ in before.items())
