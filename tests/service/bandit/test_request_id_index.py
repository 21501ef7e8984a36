"""The index of request ids against a dictionary: whatever is flushed, merged, dropped, cut short or damaged."""

import shutil
import zlib
from contextlib import nullcontext
from hashlib import blake2b
from pathlib import Path

import apsw
import numpy as np
import pytest
from fake_clocks import FakeClocks
from servers import wait_until
from store_internals import chain_of

from latecomer.errors import ConflictError, DamagedFileError, StoreError
from latecomer.service.bandit.request_id_index import FAN_IN, RequestIndex
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.storage.creation import create_if_missing
from latecomer.service.storage.limits import Limits
from latecomer.service.storage.request_id_segments import check_index, load_index, make_bucket_reader, remove_index
from latecomer.service.storage.request_id_writer import flush_requests, merge_segments
from latecomer.service.store import Store
from latecomer.service.tools.verify import verify

BANDIT = 7


def digest(number: int) -> bytes:
    return blake2b(str(number).encode(), digest_size=16).digest()


@pytest.fixture
def connection(tmp_path: Path) -> apsw.Connection:
    create_if_missing(tmp_path / "store.db", create=False)
    return apsw.Connection(str(tmp_path / "store.db"))


SMALL = Limits(request_buffer=50)
"""Segments of few requests, so that there are some of every level."""


def flushed(connection: apsw.Connection, index: RequestIndex, rounds: int) -> None:
    for _ in flush_requests(connection, BANDIT, index, index.begin_flush(), last_round=rounds, lock=nullcontext()):
        pass


def merged(connection: apsw.Connection, index: RequestIndex, pruned_rounds: int = 0) -> None:
    for _ in merge_segments(connection, BANDIT, index, pruned_rounds=pruned_rounds, lock=nullcontext()):
        pass


def holds(connection: apsw.Connection, index: RequestIndex, truth: dict[bytes, int]) -> None:
    read = make_bucket_reader(connection, BANDIT)
    assert {key: index.find(key, read) for key in truth} == truth
    assert not [number for number in range(10**6, 10**6 + 500) if index.find(digest(number), read)]


def test_request_index_finds_every_request_through_all_levels(connection: apsw.Connection) -> None:
    index, truth, round_ = RequestIndex(buffer_size=50), {}, 0
    for batch in range(100):
        for _ in range(50 if batch % 7 else 3):
            round_ += 1
            key = digest(round_ if round_ % 11 else round_ - 10)  # now and then an id that was used before
            truth[key] = round_
            index.add(key, round_)
        flushed(connection, index, round_)
        merged(connection, index)
        if batch % 50 == 49:
            holds(connection, index, truth)
            again = load_index(connection, BANDIT, at_least=round_, limits=SMALL)
            assert again.is_whole
            holds(connection, again, truth)
    assert {index.find_level(segment) for segment in index.segments} >= {0, 1, 2}
    assert len(index.segments) < 3 * FAN_IN
    assert check_index(connection, BANDIT) == sum(segment.count for segment in index.segments)
    tables = ("request_bucket", "request_filter")
    found = {row for table in tables for row in connection.execute(f"SELECT DISTINCT (key >> 20) & 1023 FROM {table}")}  # noqa: S608
    assert found == {(segment.id,) for segment in index.segments}  # nothing is left of those that were merged


def test_request_index_drops_segments_of_pruned_rounds(connection: apsw.Connection) -> None:
    index = RequestIndex(buffer_size=50)
    for round_ in range(1, 301):
        index.add(digest(round_), round_)
        if round_ % 100 == 0:
            flushed(connection, index, round_)
    merged(connection, index, pruned_rounds=200)
    holds(connection, index, {digest(round_): round_ for round_ in range(201, 301)})
    assert index.find(digest(5), make_bucket_reader(connection, BANDIT)) is None
    assert [segment.last_round for segment in index.segments] == [300]


def test_request_index_survives_a_flush_or_merge_cut_short(connection: apsw.Connection, tmp_path: Path) -> None:
    truth = {digest(round_): round_ for round_ in range(1, 2001)}
    for steps in range(0, 30, 6):
        for _ in remove_index(connection, BANDIT):
            pass
        index = RequestIndex(buffer_size=50)
        for key, round_ in truth.items():
            index.add(key, round_)
            if round_ % 250 == 0 and round_ < 2000:
                flushed(connection, index, round_)
        job = flush_requests(connection, BANDIT, index, index.begin_flush(), last_round=2000, lock=nullcontext())
        for _ in zip(range(steps), job, strict=False):
            pass
        del job  # as when the store closes
        holds(connection, index, truth)
        again = load_index(connection, BANDIT, at_least=0, limits=SMALL)
        again.update(list(truth), list(truth.values()))  # what the log has
        flushed(connection, again, 2000)
        job = merge_segments(connection, BANDIT, again, pruned_rounds=0, lock=nullcontext())
        for _ in zip(range(steps), job, strict=False):
            pass
        del job
        holds(connection, load_index(connection, BANDIT, at_least=2000, limits=SMALL), truth)


def test_failed_flush_goes_into_the_next_segment(connection: apsw.Connection) -> None:
    index = RequestIndex(buffer_size=50)
    for round_ in range(1, 101):
        index.add(digest(round_), round_)
    first = index.begin_flush()
    for round_ in range(101, 201):
        index.add(digest(round_), round_)
    second = index.begin_flush()
    connection.execute("CREATE TRIGGER full BEFORE INSERT ON request_bucket BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(apsw.ConstraintError):
        list(flush_requests(connection, BANDIT, index, first, last_round=100, lock=nullcontext()))
    connection.execute("DROP TRIGGER full")
    list(flush_requests(connection, BANDIT, index, second, last_round=200, lock=nullcontext()))
    assert index.buffered == 0
    holds(
        connection,
        load_index(connection, BANDIT, at_least=200, limits=SMALL),
        {digest(round_): round_ for round_ in range(1, 201)},
    )


def test_bloom_filters_pass_few_and_beyond_the_limit_buckets_are_read(connection: apsw.Connection) -> None:
    index = RequestIndex()
    for round_ in range(1, 30_001):
        index.add(digest(round_), round_)
    flushed(connection, index, 30_000)
    (segment,) = index.segments
    assert segment.words * 8 <= 2.01 * 30_000  # bytes of memory
    read, reads = make_bucket_reader(connection, BANDIT), []
    for number in range(10**6, 10**6 + 20_000):
        index.find(digest(number), lambda segment, bucket: reads.append(bucket) or read(segment, bucket))  # type: ignore[func-returns-value]
    assert len(reads) < 0.01 * 20_000
    index = load_index(connection, BANDIT, at_least=30_000, limits=Limits(filter_bytes=100))
    holds(connection, index, {digest(n): n for n in range(1, 30_001, 500)})


# ---- in a store ----

ACTIONS = np.eye(2)


def ask(store: Store, numbers: range) -> dict[int, str]:
    """Ask for decisions with request ids of these numbers; their decision ids."""
    answers = {number: store.decide("shop", ACTIONS, request_id=f"request {number}") for number in numbers}
    store.wait(list(answers.values())[-1][1])
    return {number: answer.decision_id for number, (answer, _) in answers.items()}


def full_store(path: Path, count: int, snapshot_every: int = 200) -> dict[int, str]:
    with Store.open(path, clock=FakeClocks(), limits=SMALL, snapshot_every=snapshot_every) as store:
        store.create("shop", BanditSpec(dim=2, window=100, policy="Uniform"))
        return ask(store, range(count))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, str]]:
    """A closed store of FULL decisions, and their ids."""
    path = tmp_path_factory.mktemp("full") / "store.db"
    return path, full_store(path, FULL)


FULL = 350


@pytest.mark.parametrize(("before", "after"), [(240, 120), pytest.param(1200, 400, marks=pytest.mark.soak)])
def test_repeated_requests_are_answered_after_close_and_kill(tmp_path: Path, before: int, after: int) -> None:
    path, rounds = tmp_path / "store.db", before + after
    given = full_store(path, before, before // 3)
    killed = tmp_path / "killed.db"
    with Store.open(path, clock=FakeClocks(), limits=SMALL, snapshot_every=before // 3) as store:
        assert ask(store, range(before)) == given
        for first in range(before, rounds, 20):
            given |= ask(store, range(first, first + 20))
        assert ask(store, range(rounds)) == given
        assert chain_of(store, "shop").requests.buffered < 200
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")  # as kill -9 would leave it
    for left in (path, killed):
        assert list(verify(left))
        with Store.open(left, clock=FakeClocks(), limits=SMALL) as store:
            assert ask(store, range(rounds)) == given
            assert store.stats("shop").rounds == rounds
            with pytest.raises(ConflictError, match="another body"):
                store.decide("shop", ACTIONS[:1], request_id="request 5")
            store.delete("shop")
        connection = apsw.Connection(str(left))
        for table in ("request_bucket", "request_filter", "request_manifest"):
            assert list(connection.execute(f"SELECT count(*) FROM {table}")) == [(0,)]  # noqa: S608


@pytest.mark.parametrize("table", ["request_manifest", "request_filter"])
@pytest.mark.parametrize("damage", ["UPDATE {} SET data = zeroblob(50)", "DELETE FROM {}"])
def test_damaged_request_index_is_rebuilt_from_the_log(
    full: tuple[Path, dict[int, str]], tmp_path: Path, table: str, damage: str
) -> None:
    path, given = Path(shutil.copy(full[0], tmp_path)), full[1]
    connection = apsw.Connection(str(path))
    connection.execute(damage.format(table))
    connection.close()
    with Store.open(path, clock=FakeClocks(), limits=SMALL) as store:
        assert ask(store, range(FULL)) == given
    assert list(verify(path))


def test_damaged_bucket_is_reported_and_rebuilt_at_restart(full: tuple[Path, dict[int, str]], tmp_path: Path) -> None:
    path, given = Path(shutil.copy(full[0], tmp_path)), full[1]
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE request_bucket SET data = zeroblob(50)")
    connection.close()
    with pytest.raises(DamagedFileError, match="start it again"):
        list(verify(path))
    with Store.open(path, clock=FakeClocks(), limits=SMALL) as store:
        with pytest.raises(StoreError, match="start it again"):
            ask(store, range(1))
        assert store.stats("shop").rounds == FULL
    with Store.open(path, clock=FakeClocks(), limits=SMALL) as store:
        assert ask(store, range(FULL)) == given
    assert list(verify(path))


@pytest.mark.parametrize(
    ("few", "many", "buffer"), [(500, 3_000, 125), pytest.param(2_000, 20_000, 500, marks=pytest.mark.soak)]
)
def test_memory_and_snapshots_do_not_grow_with_request_ids(tmp_path: Path, few: int, many: int, buffer: int) -> None:
    """Two bytes of a filter remain in memory of each request id, and nothing of it in a snapshot."""
    sizes, limits = {}, Limits(request_buffer=buffer)
    for count in (few, many):
        path = tmp_path / f"{count}.db"
        with Store.open(path, clock=FakeClocks(), limits=limits, snapshot_every=2 * buffer) as store:
            store.create("shop", BanditSpec(dim=2, window=100, policy="Uniform"))
            for first in range(0, count, 100):
                ask(store, range(first, first + 100))
            index = chain_of(store, "shop").requests
            more = iter(range(count, 2 * count))  # a flush that is due while another is under way waits for an event

            def is_flushed() -> bool:
                ask(store, range(first := next(more), first + 1))  # noqa: B023 - it is called at once
                return index.buffered < 2 * buffer  # noqa: B023

            assert wait_until(is_flushed)
            assert sum(segment.words * 8 for segment in index.segments) <= 2.2 * next(more)
        connection = apsw.Connection(str(path))
        snapshots: dict[int, int] = {}
        for key, part in connection.execute("SELECT key, data FROM snapshot_part"):
            snapshots[key] = snapshots.get(key, 0) + len(zlib.decompress(part))
        sizes[count] = max(snapshots.values())
        connection.close()
    assert sizes[many] < 1.1 * sizes[few]
