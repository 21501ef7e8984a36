"""Small rows bound into larger ones: the same events and the same chain, in fewer rows."""

import os
import signal
import time
from multiprocessing import get_context
from pathlib import Path

import apsw
import numpy as np
import pytest
from fake_clocks import DAY, FakeClocks, state_of, unit_rows

from latecomer.errors import DamagedFileError
from latecomer.service import registry as roster
from latecomer.service.messages import BanditSpec, Conversion, DecisionAnswer
from latecomer.service.storage.compaction import FULL, bound, plan_compaction
from latecomer.service.storage.recovery import _from_snapshot, read_descriptors
from latecomer.service.storage.rows import GENESIS, Row, append, connect, key_of, make_row, row_of_round, rows
from latecomer.service.storage.snapshots import keys
from latecomer.service.store import Store
from latecomer.service.tools.verify import verify

SPEC = BanditSpec(dim=2, window="7d", policy="OTFLinTS", parameters={"seed": 1})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def one_by_one(store: Store, count: int) -> list[str]:
    """Decisions that are each a commit of their own, every fourth with a conversion; their ids."""
    rounds, ids = store.stats("shop").rounds, []
    generator = np.random.default_rng(rounds)
    for i in range(count):
        answer, ticket = store.decide("shop", unit_rows(generator, 3, 2), ["a", "b", "c"], request_id=f"r{rounds + i}")
        store.wait(ticket)
        ids.append(answer.decision_id)
        if i % 4 == 0:
            store.wait(store.convert("shop", [Conversion(answer.decision_id, 0.5)])[1])
    return ids


def bind(store: Store) -> None:
    """Have small rows bound now, and wait for it."""
    bandit = store._bandits["shop"]
    with store._lock:
        store._maintenance.bind(bandit)
    for _ in range(2000):
        if not bandit.binding:
            return
        time.sleep(0.005)
    raise AssertionError("rows are bound for ten seconds")


def log_of(path: Path) -> list[Row]:
    connection = connect(path, write=False)
    found = list(rows(connection, 1, after=0, before=GENESIS))
    connection.close()
    return found


def test_a_bound_log_says_what_it_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "LOOSE", 10**9)
    with Store.open(path, clock=FakeClocks()) as store:
        store.create("shop", SPEC)
        one_by_one(store, 400)
        before, state = list(rows(store.reader, 1, after=0, before=GENESIS)), state_of(store, "shop")
    assert [row.span for row in before] == [1] * 501
    with Store.open(path, clock=FakeClocks()) as store:
        bind(store)
    after = log_of(path)
    assert b"".join(row.payload for row in after) == b"".join(row.payload for row in before)
    assert (sum(row.span for row in after), after[-1].seq, after[-1].link) == (501, 501, before[-1].checksum)
    assert sum(row.count for row in after) == sum(row.count for row in before)
    for row in after:  # each says of its end what the last of its commits said
        last = before[row.seq - 1]
        assert (row.rounds, row.stamp, row.link) == (last.rounds, last.stamp, last.checksum)
        assert len(row.payload) <= FULL
    assert len(after) < 501 * 116 / FULL * 2
    with Store.open(path, clock=FakeClocks()) as store:
        assert state_of(store, "shop") == state
    assert list(verify(path))[1].startswith("shop: rows 1 to 501, 501 events, 400 rounds")


def test_rows_are_bound_while_the_desk_is_busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only behind a snapshot: what came after the last one is read at a start too."""
    monkeypatch.setattr(roster, "LOOSE", 100)
    with Store.open(path, clock=FakeClocks()) as store:
        store.create("shop", SPEC)
        one_by_one(store, 2000)
        bind(store)
        ((small,),) = store.reader.execute("SELECT count(*) FROM log WHERE key >> 40 = 1 AND span = 1")
        assert keys(store.reader, 1) == []
        assert small < 100 + 2 * FULL / 77
    with Store.open(path, clock=FakeClocks()) as store:
        assert store.stats("shop").rounds == 2000


def test_a_request_is_answered_from_a_bound_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "LOOSE", 50)
    sets = unit_rows(np.random.default_rng(3), 3, 2)

    def asked(store: Store, i: int) -> DecisionAnswer:
        answer, ticket = store.decide("shop", sets, ["a", "b", "c"] if i % 3 else None, request_id=f"r{i}")
        store.wait(ticket)
        return answer

    with Store.open(path, clock=FakeClocks(), snapshot_every=300) as store:
        store.create("shop", SPEC)
        answers = []
        for i in range(1000):
            answers.append(asked(store, i))
            for earlier in (i // 2, i // 3, max(0, i - 60)):  # in rows that are bound, are being bound, and will be
                assert asked(store, earlier) == answers[earlier]
    with Store.open(path, clock=FakeClocks()) as store:
        assert [asked(store, i) for i in range(1000)] == answers
        assert store.stats("shop").rounds == 1000


def test_every_snapshot_stands_on_the_end_of_a_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "LOOSE", 30)
    with Store.open(path, clock=FakeClocks(), snapshot_every=90) as store:
        store.create("shop", SPEC)
        for _ in range(30):
            one_by_one(store, 20)
            ends = {key for (key,) in store.reader.execute("SELECT key FROM log")}
            assert ends.issuperset(keys(store.reader, 1))
    for lost in ("SELECT max(key) FROM snapshot", "SELECT key FROM snapshot"):  # the older one, and none
        connection = connect(path, write=True)
        connection.execute(f"UPDATE part SET data = x'00' WHERE key IN ({lost})")  # noqa: S608 - our own words
        connection.close()
        with Store.open(path, clock=FakeClocks()) as store:
            assert store.stats("shop").rounds == 600


def test_large_rows_are_left_alone(path: Path) -> None:
    with Store.open(path, clock=FakeClocks()) as store:
        store.create("shop", SPEC)
        (id_,) = one_by_one(store, 1)
        for _ in range(30):
            store.wait(store.convert("shop", [Conversion(id_)] * (FULL // 34))[1])
            store.wait(store.decide("shop", np.eye(2))[1])
        bind(store)
        assert store._bandits["shop"].bound > 50
    assert {row.span for row in log_of(path)} == {1}


def test_damage_is_left_alone_and_told(path: Path) -> None:
    """Rows that are damaged are not bound over; they cost no snapshot, and health tells of them until the end."""
    with Store.open(path, clock=FakeClocks(), snapshot_every=300) as store:
        store.create("shop", BanditSpec(dim=2, window=10, policy="OTFLinTS"))
        store.create("news", BanditSpec(dim=2, window=10, policy="OTFLinTS"))
        one_by_one(store, 100)
        connection = connect(path, write=True)
        connection.execute("UPDATE log SET stamp = stamp + 1 WHERE key = ?", (key_of(1, 50),))
        connection.close()
        one_by_one(store, 900)
        for _ in range(2):
            bind(store)
            store.wait(store.decide("news", np.eye(2))[1])
            assert "row 50 of chain 1 of the log is damaged" in (store.health.snapshot_failure or "")
        state = state_of(store, "shop")
        spans = dict(store.reader.execute("SELECT key & 0xffffffff, span FROM log WHERE key >> 40 = 1"))
        assert spans[50] == 1
        assert max(spans.values()) > 50
    with Store.open(path, clock=FakeClocks()) as store:  # nothing that is open is in that row
        assert state_of(store, "shop") == state
        assert store.stats("news").rounds == 2
    with pytest.raises(DamagedFileError, match="row 50 of chain 1 of the log is damaged"):
        list(verify(path))


def test_what_is_bound_is_pruned_as_a_whole(path: Path) -> None:
    machine = FakeClocks()
    with Store.open(path, clock=machine, retention="1d") as store:
        store.create("shop", SPEC)
        one_by_one(store, 200)
        machine.advance(4 * DAY)
    with Store.open(path, clock=machine, retention="1d") as store:
        one_by_one(store, 200)
    machine.advance(4 * DAY + DAY // 2)
    for _ in range(2):
        with Store.open(path, clock=machine, retention="1d") as store:
            bind(store)
            one_by_one(store, 1)
    connection = connect(path, write=False)
    first, span = next(connection.execute("SELECT key - span + 1, span FROM log WHERE key >> 40 = 1 ORDER BY key"))
    connection.close()
    assert first == key_of(1, 252)  # the 251 rows of the first day are gone, and none of the second's
    assert span > 50
    assert list(verify(path))[1].endswith("pruned up to row 251")


def test_a_stop_does_not_wait_for_binding_and_the_next_life_does_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "LOOSE", 10**9)
    for _ in range(3):
        with Store.open(path, clock=FakeClocks()) as store:
            store.create("shop", SPEC)
            one_by_one(store, 100)
    assert {row.span for row in log_of(path)} == {1}
    monkeypatch.setattr(roster, "LOOSE", 300)
    with Store.open(path, clock=FakeClocks()) as store:
        assert store._bandits["shop"].loose > 300
        one_by_one(store, 1)
        bind(store)
    assert len(log_of(path)) < 30


def test_a_snapshot_without_decisions_may_stand_on_a_bound_row(path: Path) -> None:
    for life in range(3):
        with Store.open(path, clock=FakeClocks()) as store:
            store.create("shop", SPEC)
            for _ in range(20 if life == 0 else 1):
                store.wait(store.convert("shop", [Conversion("nobody")])[1])
            bind(store)
    connection = connect(path, write=False)
    (descriptor,) = read_descriptors(connection, {})[0].values()
    assert next(connection.execute("SELECT max(span) FROM log"))[0] > 20
    saved = _from_snapshot(connection, descriptor)
    connection.close()
    assert saved is not None
    assert saved[0].counters.conversions.sum() == 22


def killed_while_binding(path: Path, steps: int) -> None:
    store = Store.open(path, clock=FakeClocks())
    connection, bandit = store._connections.writing, store._bandits["shop"]
    chore = plan_compaction(connection, bandit, until=store._writer.heads[1][0])
    for _ in range(steps):
        next(chore)
    with connection:
        connection.execute(
            "DELETE FROM log WHERE key BETWEEN ? AND ?", (key_of(1, bandit.bound + 1), key_of(1, bandit.bound + 9))
        )
        os.kill(os.getpid(), signal.SIGKILL)  # amid a transaction


@pytest.mark.parametrize("steps", [0, 2])
def test_a_kill_amid_binding(path: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "LOOSE", 10**9)
    store = Store.open(path, clock=FakeClocks())
    store.create("shop", SPEC)
    one_by_one(store, 600)
    state = state_of(store, "shop")
    store._bandits["shop"].unsaved = 0  # no snapshot, and nothing bound, as after a kill
    store.close()
    process = get_context("spawn").Process(target=killed_while_binding, args=(path, steps))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with Store.open(path, clock=FakeClocks()) as store:
        assert state_of(store, "shop") == state
    assert sum(row.span for row in log_of(path)) == 751


def test_rows_that_are_bound_again() -> None:
    """Bound rows are rows: what stands for several commits may be bound with more."""
    made, before = [], GENESIS
    for seq in range(1, 10):
        made.append(make_row(1, seq, count=2, rounds=seq, stamp=seq, before=before, payload=bytes([seq])))
        before = made[-1].link
    halves = [bound(made[:4]), bound(made[4:])]
    whole = bound(halves)
    assert whole == bound(made)
    assert (whole.first, whole.seq, whole.link, whole.payload) == (1, 9, made[-1].checksum, bytes(range(1, 10)))
    for log in (made, halves, [*halves[:1], *made[4:]], [whole]):
        connection = log_with(log)
        assert list(rows(connection, 1, after=0, before=GENESIS)) == log
        for round_ in range(1, 10):
            found = row_of_round(connection, 1, round_)
            assert found is not None
            assert found.first <= round_ <= found.seq
    connection = log_with([halves[0], made[8]])
    with pytest.raises(DamagedFileError, match="row 5 of chain 1 of the log is damaged: it is missing"):
        list(rows(connection, 1, after=0, before=GENESIS))
    with pytest.raises(DamagedFileError, match="it is missing, or no row"):
        row_of_round(connection, 1, 7)


def log_with(some: list[Row]) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE TABLE log (key INTEGER PRIMARY KEY, span, count, rounds, stamp, before, after, checksum, payload)"
    )
    for row in some:
        append(connection, row)
    return connection
