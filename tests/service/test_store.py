"""The store: bandits, decisions, reports, repeated requests, restarts, one owner."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from fake_clocks import DAY, HOUR, FakeClocks, state_of, unit_rows
from store_internals import sqlite_log

from latecomer.errors import ConflictError, InputError, UnknownBanditError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, Revocation, Verdict
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store

WEEK = BanditSpec(dim=2, window="7d")
ROUNDS = BanditSpec(dim=2, window=50, policy="OTFLinUCB", parameters={"exploration": 0.5})
OFFERS = np.eye(2)


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


def decided(store: Store, name: str, count: int) -> list[str]:
    """The ids of so many durable decisions."""
    answers = [store.decide(name, OFFERS) for _ in range(count)]
    store.wait(answers[-1][1])
    return [answer.decision_id for answer, _ in answers]


def verdicts_of(store: Store, name: str, ids: list[str]) -> list[Verdict]:
    verdicts, ticket = store.convert(name, [Conversion(id_) for id_ in ids])
    store.wait(ticket)
    return verdicts


# ---- bandits ----


def test_create_with_the_same_specification_is_not_new(store: Store) -> None:
    assert store.create("shop", WEEK)[1]
    assert not store.create("shop", BanditSpec(dim=2, window="168h"))[1]
    for other in (
        BanditSpec(dim=3, window="7d"),
        BanditSpec(dim=2, window=7),
        BanditSpec(dim=2, window="7d", parameters={"ridge": 2.0}),
    ):
        with pytest.raises(ConflictError, match="bandit 'shop' exists with another specification"):
            store.create("shop", other)
    assert [info.name for info in store.list_bandits()] == ["shop"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a\0b", ".hidden", "x" * 65, "ü"])
def test_invalid_names_are_refused(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="name must be"):
        store.create(name, WEEK)
    with pytest.raises(UnknownBanditError):
        store.decide(name, OFFERS)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (BanditSpec(dim=2, window="7 days"), "window must be a whole number and one of"),
        (BanditSpec(dim=2, window="99999999w"), "window must be at most 36500d"),
        (BanditSpec(dim=2, window=-1), "window must be at least 0"),
        (BanditSpec(dim=0, window=1), "dim must be at least 1"),
        (BanditSpec(dim=2, window=1, policy="Best"), "policy must be one of"),
        (BanditSpec(dim=2, window=1, parameters={"clock": 1}), "parameters of MaturedLinTS must be among"),
        (BanditSpec(dim=2, window=1, parameters={"ridge": "big"}), "ridge must be"),
        (BanditSpec(dim=2, window=1, parameters={"seed": None}), "seed must be a whole number"),
    ],
)
def test_invalid_specifications_are_refused(store: Store, spec: BanditSpec, message: str) -> None:
    with pytest.raises(InputError, match=message):
        store.create("shop", spec)
    assert store.list_bandits() == []


def test_recreated_bandit_does_not_know_old_ids(store: Store) -> None:
    store.create("shop", WEEK)
    (old,) = decided(store, "shop", 1)
    store.delete("shop")
    with pytest.raises(UnknownBanditError, match="no bandit 'shop'"):
        store.stats("shop")
    store.create("shop", WEEK)
    (new,) = decided(store, "shop", 1)
    assert verdicts_of(store, "shop", [old, new]) == [Verdict.UNKNOWN, Verdict.ACCEPTED]


def test_deleted_bandit_leaves_no_rows(path: Path) -> None:
    with Store.open(path) as store:
        store.create("shop", WEEK)
        store.create("other", WEEK)
        decided(store, "shop", 100)
        store.delete("shop")
    with Store.open(path) as store:
        assert [info.name for info in store.list_bandits()] == ["other"]
        ((rows, parts),) = sqlite_log(store).reader.execute(
            "SELECT (SELECT count(*) FROM log WHERE key >> 40 = 1), "
            "(SELECT count(*) FROM snapshot_part WHERE key >> 40 = 1)"
        )
        assert (rows, parts) == (0, 0)


# ---- reports ----


def test_convert_and_revoke_give_every_verdict(store: Store) -> None:
    store.create("shop", ROUNDS)
    ids = decided(store, "shop", 60)
    unknown, future = "0" * 16 + "-1", ids[0][:17] + "ffff"
    verdicts = verdicts_of(
        store, "shop", [ids[59], ids[59], ids[0], unknown, future, "", ids[0][:17] + "01", "x" * 1000]
    )
    assert [verdict.value for verdict in verdicts] == ["accepted", "duplicate", "late", *["unknown"] * 5]
    (taken_back,), _ = store.revoke("shop", [Revocation(ids[59])])
    again = [verdict.value for verdict in store.revoke("shop", [Revocation(ids[59]), Revocation(ids[58])])[0]]
    assert (taken_back, again) == (Verdict.ACCEPTED, ["duplicate", "unknown"])
    stats = store.stats("shop")
    assert stats.conversions == {"accepted": 1, "duplicate": 1, "late": 1, "unknown": 5}
    assert stats.revocations == {"accepted": 1, "duplicate": 1, "late": 0, "unknown": 1}
    assert sum(stats.delay_counts) == 1


def test_one_bad_value_refuses_the_whole_list(store: Store) -> None:
    store.create("shop", WEEK)
    ids = decided(store, "shop", 2)
    before = state_of(store, "shop")
    with pytest.raises(InputError, match=r"value of conversion 1 must be in \[0, 1\]; got 2.0"):
        store.convert("shop", [Conversion(ids[0]), Conversion(ids[1], 2.0)])
    assert state_of(store, "shop") == before


def test_empty_report_writes_nothing(store: Store) -> None:
    store.create("shop", WEEK)
    verdicts, ticket = store.convert("shop", [])
    store.wait(ticket, timeout=0)
    assert verdicts == []


def test_occurred_at_counts_while_the_decision_is_open(path: Path) -> None:
    machine = FakeClocks()
    with Store.open(path, clock=machine) as store:
        store.create("shop", WEEK)
        (first,) = decided(store, "shop", 1)
        bought = store.info("shop").created_at + timedelta(days=6)
        machine.advance(8 * DAY)
        assert store.convert("shop", [Conversion(first)])[0] == [Verdict.LATE]
        assert store.convert("shop", [Conversion(first, occurred_at=bought + timedelta(days=1.5))])[0] == [Verdict.LATE]
        assert store.convert("shop", [Conversion(first, occurred_at=bought)])[0] == [Verdict.ACCEPTED]
        decided(store, "shop", 1)
        assert store.convert("shop", [Conversion(first, occurred_at=bought)])[0] == [Verdict.DUPLICATE]  # in its grace
        machine.advance(DAY)
        decided(store, "shop", 1)
        assert store.convert("shop", [Conversion(first, occurred_at=bought)])[0] == [Verdict.LATE]  # forgotten by now


# ---- requests ----


def test_repeated_request_gets_the_same_answer(path: Path) -> None:
    with Store.open(path) as store:
        store.create("shop", WEEK)
        first = [store.decide("shop", OFFERS, ["a", "b"], request_id=str(i))[0] for i in range(5)]
        bare = store.decide("shop", OFFERS, request_id="bare")[0]
        in_flight, ticket = store.decide("shop", OFFERS, ["a", "b"], request_id="3")
        assert in_flight == first[3]
        store.wait(ticket)
        decided(store, "shop", 3)
        assert [store.decide("shop", OFFERS, ["a", "b"], request_id=str(i))[0] for i in range(5)] == first
        with pytest.raises(ConflictError, match="request_id '3' was used with another body"):
            store.decide("shop", OFFERS, ["a", "c"], request_id="3")
        assert store.stats("shop").rounds == 9
    with Store.open(path) as store:
        assert [store.decide("shop", OFFERS, ["a", "b"], request_id=str(i))[0] for i in range(5)] == first
        assert store.decide("shop", OFFERS, request_id="bare")[0] == bare
        with pytest.raises(ConflictError, match="request_id 'bare' was used with another body"):
            store.decide("shop", -OFFERS, request_id="bare")
        assert store.stats("shop").rounds == 9


@pytest.mark.parametrize(
    ("ids", "request_id", "message"),
    [
        (["a"], None, "ids must name every action, 2; got 1"),
        (["a", 1], None, "ids must be texts"),
        (["a", "\ud800"], None, "ids must be Unicode"),
        (None, "", "request_id must be a text of 1 to 200"),
        (None, "x" * 257, "request_id must be a text of 1 to 200"),
    ],
)
def test_invalid_ids_and_request_ids_change_nothing(
    store: Store, ids: list[str], request_id: str, message: str
) -> None:
    store.create("shop", WEEK)
    before = state_of(store, "shop")
    with pytest.raises(InputError, match=message):
        store.decide("shop", OFFERS, ids, request_id=request_id)
    assert state_of(store, "shop") == before


def test_request_id_of_refused_actions_can_be_used_again(store: Store) -> None:
    store.create("shop", WEEK)
    with pytest.raises(InputError, match="norm at most 1"):
        store.decide("shop", 2 * OFFERS, request_id="r")
    assert store.decide("shop", OFFERS, request_id="r")[0].round == 1


# ---- restarts ----


@pytest.mark.parametrize("spec", [WEEK, ROUNDS, BanditSpec(dim=5, window=30, policy="Uniform")])
@pytest.mark.parametrize("snapshots", [True, False])
@pytest.mark.parametrize("turns", [60, pytest.param(300, marks=pytest.mark.soak)])
def test_restart_gives_the_same_bits(path: Path, spec: BanditSpec, snapshots: bool, turns: int) -> None:
    """Three hundred hours, so that windows close."""
    generator, machine = np.random.default_rng(1), FakeClocks()
    with Store.open(path, clock=machine, snapshot_every=turns // 4, retention="forever") as store:
        store.create("shop", spec)
        ids: list[str] = []
        for turn in range(turns):
            rows = unit_rows(generator, 3, spec.dim)
            answer, ticket = store.decide("shop", rows, ["a", "b", "c"] if turn % 5 == 0 else None)
            ids.append(answer.decision_id)
            reports = [Conversion(str(id_), generator.random()) for id_ in generator.choice(ids, turn % 3)]
            store.convert("shop", reports)
            if turn % 10 == 0:
                store.wait(ticket)
                store.revoke("shop", [Revocation(ids[generator.integers(len(ids))])])
            machine.advance(300 // turns * HOUR)
        before = state_of(store, "shop")
    for _ in range(2):
        with Store.open(path, clock=machine, retention="forever") as store:
            assert state_of(store, "shop") == before
            if not snapshots:
                connection = connect(path, write=True)
                connection.execute("DELETE FROM snapshot")
                connection.close()


def test_two_snapshots_are_kept(path: Path) -> None:
    with Store.open(path, snapshot_every=10) as store:
        store.create("shop", BanditSpec(dim=2, window=5))
        for _ in range(10):
            decided(store, "shop", 10)
    with Store.open(path) as store:
        ((snapshots, orphans),) = sqlite_log(store).reader.execute(
            "SELECT (SELECT count(*) FROM snapshot),"
            " (SELECT count(*) FROM snapshot_part WHERE key NOT IN (SELECT key FROM snapshot))"
        )
        assert (snapshots, orphans) == (2, 0)


def test_threads_share_a_store(store: Store) -> None:
    store.create("shop", WEEK)
    ids: list[str] = []

    def work() -> None:
        for _ in range(15):
            answer, ticket = store.decide("shop", OFFERS)
            store.wait(ticket, timeout=30)
            ids.append(answer.decision_id)

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 120
    assert store.stats("shop").rounds == 120
    assert store.health.events == 122
    assert store.health.commits < 122
