"""Compaction: the same events and the same chain, in fewer rows."""

import os
import signal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import apsw
import msgspec
import numpy as np
import pytest
from fake_clocks import DAY, FakeClocks, state_of, unit_rows
from store_internals import chain_of, compact_now, sqlite_log

from latecomer.errors import DamagedFileError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, DecisionAnswer
from latecomer.service.storage.compaction import MAX_BYTES, compact, join_rows
from latecomer.service.storage.limits import Limits
from latecomer.service.storage.recovery import load_newest_snapshot, make_index_opener, read_descriptors
from latecomer.service.storage.rows import GENESIS, Row, find_row_of_round, insert_row, key_of, make_row, read_rows
from latecomer.service.storage.schema import connect
from latecomer.service.storage.snapshots import list_snapshots
from latecomer.service.store import Store
from latecomer.service.tools.verify import verify

SPEC = BanditSpec(dim=2, window="7d", policy="OTFLinTS", parameters={"seed": 1})


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


def log_of(path: Path) -> list[Row]:
    connection = connect(path, write=False)
    found = list(read_rows(connection, 1, after=0, parent=GENESIS))
    connection.close()
    return found


def test_compaction_keeps_events_counts_and_chain(path: Path) -> None:
    limits = Limits(small_rows=10**9)
    with Store.open(path, clock=FakeClocks(), limits=limits) as store:
        store.create("shop", SPEC)
        one_by_one(store, 280)
        before, state = list(read_rows(sqlite_log(store).reader, 1, after=0, parent=GENESIS)), state_of(store, "shop")
    assert [row.commits for row in before] == [1] * 351
    with Store.open(path, clock=FakeClocks(), limits=limits) as store:
        compact_now(store)
    after = log_of(path)
    assert b"".join(row.payload for row in after) == b"".join(row.payload for row in before)
    assert (sum(row.commits for row in after), after[-1].seq, after[-1].link) == (351, 351, before[-1].checksum)
    assert sum(row.count for row in after) == sum(row.count for row in before)
    for row in after:  # each ends as the last of its commits does
        last = before[row.seq - 1]
        assert (row.rounds, row.stamp, row.link) == (last.rounds, last.stamp, last.checksum)
        assert len(row.payload) <= MAX_BYTES
    assert len(after) < 351 * 116 / MAX_BYTES * 2
    with Store.open(path, clock=FakeClocks(), limits=limits) as store:
        assert state_of(store, "shop") == state
    assert list(verify(path))[1].startswith("shop: rows 1 to 351, 351 events, 280 rounds")


def test_compaction_runs_while_the_store_is_busy(path: Path) -> None:
    """Not only behind a snapshot: what came after the last one is read at a start too."""
    limits = Limits(small_rows=100)
    with Store.open(path, clock=FakeClocks(), limits=limits) as store:
        store.create("shop", SPEC)
        one_by_one(store, 500)
        compact_now(store)
        ((small,),) = sqlite_log(store).reader.execute("SELECT count(*) FROM log WHERE key >> 40 = 1 AND commits = 1")
        assert list_snapshots(sqlite_log(store).reader, 1) == []
        assert small < 100 + 2 * MAX_BYTES / 77
    with Store.open(path, clock=FakeClocks(), limits=limits) as store:
        assert store.stats("shop").rounds == 500


def test_repeated_request_is_answered_from_a_compacted_row(path: Path) -> None:
    limits = Limits(small_rows=50)
    sets = unit_rows(np.random.default_rng(3), 3, 2)

    def decide_again(store: Store, i: int) -> DecisionAnswer:
        answer, ticket = store.decide("shop", sets, ["a", "b", "c"] if i % 3 else None, request_id=f"r{i}")
        store.wait(ticket)
        return answer

    with Store.open(path, clock=FakeClocks(), limits=limits, snapshot_every=80) as store:
        store.create("shop", SPEC)
        answers = []
        for i in range(160):
            answers.append(decide_again(store, i))
            for earlier in (i // 2, i // 3, max(0, i - 60)):  # in rows that are, are being and will be compacted
                assert decide_again(store, earlier) == answers[earlier]
    with Store.open(path, clock=FakeClocks(), limits=limits) as store:
        assert [decide_again(store, i) for i in range(160)] == answers
        assert store.stats("shop").rounds == 160


def test_compaction_never_crosses_a_snapshot(path: Path) -> None:
    limits = Limits(small_rows=30)
    with Store.open(path, clock=FakeClocks(), limits=limits, snapshot_every=60) as store:
        store.create("shop", SPEC)
        for _ in range(15):
            one_by_one(store, 20)
            ends = {key for (key,) in sqlite_log(store).reader.execute("SELECT key FROM log")}
            assert ends.issuperset(list_snapshots(sqlite_log(store).reader, 1))
    for lost in ("SELECT max(key) FROM snapshot", "SELECT key FROM snapshot"):  # the older one, and none
        connection = connect(path, write=True)
        connection.execute(f"UPDATE snapshot_part SET data = x'00' WHERE key IN ({lost})")  # noqa: S608 - our own words
        connection.close()
        with Store.open(path, clock=FakeClocks(), limits=limits) as store:
            assert store.stats("shop").rounds == 300


def test_compaction_leaves_large_rows(path: Path) -> None:
    with Store.open(path, clock=FakeClocks()) as store:
        store.create("shop", SPEC)
        (id_,) = one_by_one(store, 1)
        for _ in range(30):
            store.wait(store.convert("shop", [Conversion(id_)] * (MAX_BYTES // 34))[1])
            store.wait(store.decide("shop", np.eye(2))[1])
        compact_now(store)
        assert chain_of(store, "shop").compacted_up_to > 50
    assert {row.commits for row in log_of(path)} == {1}


def without_alarms(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "stats": msgspec.structs.replace(state["stats"], alarms=[])}


def test_compaction_leaves_damaged_rows_and_health_reports_them(path: Path) -> None:
    """Damaged rows are not compacted; they cost no snapshot, and health reports them until the store is closed."""
    with Store.open(path, clock=FakeClocks(), snapshot_every=150) as store:
        store.create("shop", BanditSpec(dim=2, window=10, policy="OTFLinTS"))
        store.create("news", BanditSpec(dim=2, window=10, policy="OTFLinTS"))
        one_by_one(store, 60)
        connection = connect(path, write=True)
        connection.execute("UPDATE log SET stamp = stamp + 1 WHERE key = ?", (key_of(1, 50),))
        connection.close()
        one_by_one(store, 200)
        for _ in range(2):
            compact_now(store)
            store.wait(store.decide("news", np.eye(2))[1])
            assert "row 50 of chain 1 of the log is damaged" in (store.health.snapshot_failure or "")
        state = without_alarms(state_of(store, "shop"))  # one names the damaged row, until the store is closed
        spans = dict(sqlite_log(store).reader.execute("SELECT key & 0xffffffff, commits FROM log WHERE key >> 40 = 1"))
        assert spans[50] == 1
        assert max(spans.values()) > 50
    with Store.open(path, clock=FakeClocks()) as store:  # nothing that is open is in that row
        assert without_alarms(state_of(store, "shop")) == state
        assert store.stats("news").rounds == 2
    with pytest.raises(DamagedFileError, match="row 50 of chain 1 of the log is damaged"):
        list(verify(path))


def test_pruning_deletes_compacted_rows_whole(path: Path) -> None:
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
            compact_now(store)
            one_by_one(store, 1)
    connection = connect(path, write=False)
    first, span = next(
        connection.execute("SELECT key - commits + 1, commits FROM log WHERE key >> 40 = 1 ORDER BY key")
    )
    connection.close()
    assert first == key_of(1, 252)  # the 251 rows of the first day are gone, and none of the second's
    assert span > 50
    assert list(verify(path))[1].endswith("pruned up to row 251")


def test_close_does_not_wait_for_compaction_and_next_opening_compacts(path: Path) -> None:
    limits = Limits(small_rows=10**9)
    for _ in range(3):
        with Store.open(path, clock=FakeClocks(), limits=limits) as store:
            store.create("shop", SPEC)
            one_by_one(store, 100)
    assert {row.commits for row in log_of(path)} == {1}
    limits = Limits(small_rows=300)
    with Store.open(path, clock=FakeClocks(), limits=limits) as store:
        assert chain_of(store, "shop").small_rows > 300
        one_by_one(store, 1)
        compact_now(store)
    assert len(log_of(path)) < 30


def test_snapshot_without_decisions_at_a_compacted_row_is_loaded(path: Path) -> None:
    for opening in range(3):
        with Store.open(path, clock=FakeClocks()) as store:
            store.create("shop", SPEC)
            for _ in range(20 if opening == 0 else 1):
                store.wait(store.convert("shop", [Conversion("nobody")])[1])
            compact_now(store)
    connection = connect(path, write=False)
    (descriptor,) = read_descriptors(connection, {})[0].values()
    assert next(connection.execute("SELECT max(commits) FROM log"))[0] > 20
    saved = load_newest_snapshot(connection, descriptor, make_index_opener(connection))
    connection.close()
    assert saved is not None
    assert saved.bandit.counters.conversions.sum() == 22


def killed_while_binding(path: Path, steps: int) -> None:
    store = Store.open(path, clock=FakeClocks())
    log, chain = sqlite_log(store), chain_of(store, "shop")
    connection = log._connections.writing
    job = compact(connection, chain, until=log.writer.heads[1][0])
    for _ in range(steps):
        next(job)
    with connection:
        connection.execute(
            "DELETE FROM log WHERE key BETWEEN ? AND ?",
            (key_of(1, chain.compacted_up_to + 1), key_of(1, chain.compacted_up_to + 9)),
        )
        os.kill(os.getpid(), signal.SIGKILL)  # amid a transaction


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # its threads have ended
@pytest.mark.parametrize("steps", [2, pytest.param(0, marks=pytest.mark.soak)])
def test_kill_during_compaction_loses_nothing(path: Path, steps: int) -> None:
    limits = Limits(small_rows=10**9)
    store = Store.open(path, clock=FakeClocks(), limits=limits)
    store.create("shop", SPEC)
    one_by_one(store, 400)
    state = state_of(store, "shop")
    chain_of(store, "shop").unsaved_events = 0  # no snapshot and no compaction, as after a kill
    store.close()
    process = get_context("fork").Process(target=killed_while_binding, args=(path, steps))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with Store.open(path, clock=FakeClocks(), limits=limits) as store:
        assert state_of(store, "shop") == state
    assert sum(row.commits for row in log_of(path)) == 501


def test_compacted_rows_can_be_compacted_again() -> None:
    """A row that stands for several commits may be compacted with more."""
    made, before = [], GENESIS
    for seq in range(1, 10):
        made.append(make_row(1, seq, count=2, rounds=seq, stamp=seq, parent=before, payload=bytes([seq])))
        before = made[-1].link
    halves = [join_rows(made[:4]), join_rows(made[4:])]
    whole = join_rows(halves)
    assert whole == join_rows(made)
    assert (whole.first, whole.seq, whole.link, whole.payload) == (1, 9, made[-1].checksum, bytes(range(1, 10)))
    for log in (made, halves, [*halves[:1], *made[4:]], [whole]):
        connection = log_with(log)
        assert list(read_rows(connection, 1, after=0, parent=GENESIS)) == log
        for round_ in range(1, 10):
            found = find_row_of_round(connection, 1, round_)
            assert found is not None
            assert found.first <= round_ <= found.seq
    connection = log_with([halves[0], made[8]])
    with pytest.raises(DamagedFileError, match="row 5 of chain 1 of the log is damaged: it is missing"):
        list(read_rows(connection, 1, after=0, parent=GENESIS))
    with pytest.raises(DamagedFileError, match="it is missing, or no row"):
        find_row_of_round(connection, 1, 7)


def log_with(some: list[Row]) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE TABLE log (key INTEGER PRIMARY KEY, commits, count, rounds, stamp, parent, last_checksum, checksum, "
        "payload)"
    )
    for row in some:
        insert_row(connection, row)
    return connection
