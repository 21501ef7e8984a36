"""The writer: groups, waiting in loops and threads, failures, background jobs."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, RLock, Thread, Timer

import apsw
import pytest

from latecomer.errors import StoreError
from latecomer.service.storage.background import Job
from latecomer.service.storage.creation import create_if_missing
from latecomer.service.storage.rows import GENESIS, Row, read_rows
from latecomer.service.storage.schema import connect
from latecomer.service.storage.writer import Writer


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    create_if_missing(tmp_path / "log.db", create=False)
    opened = connect(tmp_path / "log.db", write=True)
    yield opened
    opened.close()


@pytest.fixture
def writer(connection: apsw.Connection) -> Iterator[Writer]:
    made = Writer(connection, RLock(), {}, retry=0.01)
    yield made
    made.stop()


def put(writer: Writer, bandit: int, data: bytes = b"x") -> object:
    with writer._lock:
        return writer.append(bandit, data, count=1, rounds=0, stamp=0)


def written(connection: apsw.Connection, bandit: int) -> list[Row]:
    return list(read_rows(connection, bandit, after=0, parent=GENESIS))


def test_one_commit_has_one_row_per_bandit(writer: Writer, connection: apsw.Connection) -> None:
    with writer.group():
        tickets = [put(writer, bandit, bytes([i])) for i in range(10) for bandit in (1, 2)]
    assert len(set(map(id, tickets))) == 1
    writer.wait(tickets[0], timeout=10)  # type: ignore[arg-type]
    for bandit in (1, 2):
        (row,) = written(connection, bandit)
        assert (row.payload, row.count, row.seq) == (bytes(range(10)), 10, 1)
    assert (writer.commits, writer.events, writer.bytes) == (1, 20, 20)


def test_wait_async_does_not_block_the_loop(writer: Writer) -> None:
    async def main() -> list[None]:
        return await asyncio.gather(*(writer.wait_async(put(writer, 1)) for _ in range(100)))  # type: ignore[arg-type]

    assert asyncio.run(main()) == [None] * 100


def test_cancelled_wait_does_not_affect_others(writer: Writer) -> None:
    async def main() -> None:
        with writer.group():
            ticket = put(writer, 1)
            tasks = [asyncio.create_task(writer.wait_async(ticket)) for _ in range(3)]  # type: ignore[arg-type]
            await asyncio.sleep(0)
            tasks[0].cancel()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks[1:])
        assert tasks[0].cancelled()

    asyncio.run(main())


class Broken:
    """A connection whose inserts fail for a while, though one of them was written all the same."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection, self.failures, self.secretly = connection, 3, True

    def execute(self, statement: str, values: object = None) -> object:
        if statement.startswith("INSERT INTO log") and self.failures:
            self.failures -= 1
            if self.secretly:
                self.secretly = False
                self._connection.execute(statement, values)  # type: ignore[arg-type]
            raise apsw.IOError("the disk is on fire")
        return self._connection.execute(statement, values)  # type: ignore[arg-type]

    def get_autocommit(self) -> bool:
        return self._connection.get_autocommit()


def test_failed_commit_is_reported_and_tried_again(connection: apsw.Connection) -> None:
    broken = Broken(connection)
    writer = Writer(broken, RLock(), {}, retry=0.2)  # type: ignore[arg-type]

    async def main() -> None:
        ticket = put(writer, 1)
        with pytest.raises(StoreError, match="the log cannot be written: the disk is on fire"):
            await writer.wait_async(ticket)  # type: ignore[arg-type]
        assert writer.failure
        with pytest.raises(StoreError):
            await writer.wait_async(put(writer, 1))  # type: ignore[arg-type]
        with pytest.raises(StoreError):
            writer.wait(put(writer, 1))  # type: ignore[arg-type]
        for _ in range(500):
            if not writer.failure and not writer._commits._waiting:
                break
            await asyncio.sleep(0.01)
        await writer.wait_async(ticket)  # type: ignore[arg-type]

    asyncio.run(main())
    writer.stop()
    assert [row.count for row in written(connection, 1)] == [1, 2]  # nothing twice, nothing lost


def cut(writer: Writer, *work: Job) -> None:
    """Begin jobs, and return once commits have been made since."""
    with writer._lock:
        for one in work:
            writer.run_after_pending(one)
    for _ in range(5):
        writer.wait(put(writer, 1), timeout=10)  # type: ignore[arg-type]


def test_failed_job_stops_nothing(writer: Writer) -> None:
    def failing(_: apsw.Connection) -> Iterator[None]:
        yield
        raise apsw.FullError("no room for this")

    cut(writer, Job(failing, ("snapshot", 1)))
    assert writer.failure is None
    assert "no room for this" in str(writer.jobs.failure)
    cut(writer, Job(lambda _: iter(()), ("snapshot", 2)))
    assert "no room for this" in str(writer.jobs.failure)  # another job's success does not clear it
    cut(writer, Job(lambda _: iter(()), ("snapshot", 1)))
    assert writer.jobs.failure is None
    cut(writer, Job(failing, ("compaction", 1)))
    writer.jobs.forget_failures(1)
    assert writer.jobs.failure is None


def test_deferrable_jobs_come_last_and_are_dropped_at_stop(writer: Writer) -> None:
    done: list[str] = []
    is_free = Event()

    def steps(name: str, count: int) -> Callable[[apsw.Connection], Iterator[None]]:
        def begin(connection: apsw.Connection) -> Iterator[None]:
            for _ in range(count):
                done.append(name)
                is_free.wait(10)
                yield

        return begin

    with writer._lock:
        writer.run_after_pending(Job(steps("due", 1), ("snapshot", 1)))
        writer.run_after_pending(Job(steps("can wait", 3), ("compaction", 1), deferrable=True))
        writer.run_after_pending(Job(steps("due", 3), ("snapshot", 2)))
    is_free.set()
    for _ in range(1000):
        if len(done) == 7:
            break
        time.sleep(0.01)
    assert done == ["due"] * 4 + ["can wait"] * 3
    is_free.clear()
    with writer._lock:
        writer.run_after_pending(Job(steps("last", 3), ("snapshot", 1)))
        writer.run_after_pending(Job(steps("can wait", 1000), ("compaction", 1), deferrable=True))
    Timer(0.2, is_free.set).start()
    writer.stop()
    assert done[7:] == ["last"] * 3


def test_wait_raises_after_its_timeout(connection: apsw.Connection) -> None:
    writer = Writer(connection, RLock(), {})
    with writer.group():
        ticket = put(writer, 1)
        with pytest.raises(StoreError, match="was not written within 0 s"):
            writer.wait(ticket, timeout=0)  # type: ignore[arg-type]
    writer.stop()


def test_callback_that_raises_stops_nothing(writer: Writer, caplog: pytest.LogCaptureFixture) -> None:
    def raises(*_: object) -> None:
        raise OSError("nobody reads the log")

    writer.listeners.on_commit = raises
    for _ in range(3):
        writer.wait(put(writer, 1), timeout=10)  # type: ignore[arg-type]
    writer.listeners.on_trouble = raises
    writer.listeners.report_trouble("a fault")
    writer.listeners.report_trouble(None)
    writer.wait(put(writer, 2), timeout=10)  # type: ignore[arg-type]
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["a callback of the writer failed: on_commit", "a callback of the writer failed: on_trouble"]


def test_dead_writer_is_reported_and_refuses(connection: apsw.Connection, caplog: pytest.LogCaptureFixture) -> None:
    def fault(_: apsw.Connection) -> Iterator[None]:
        raise LookupError("nobody foresaw this")

    writer, died = Writer(connection, RLock(), {}), Event()
    writer.listeners.on_death = died.set
    with writer._lock:
        writer.run_after_pending(Job(fault, ("fault", 0)))
        ticket = put(writer, 1)
    with pytest.raises(
        StoreError, match=r"the writer has died \(LookupError\('nobody foresaw this'\)\): open the store"
    ):
        writer.wait(ticket, timeout=10)  # type: ignore[arg-type]
    assert died.wait(10)
    assert writer.find_fault() == writer.death == writer.failure
    assert [record.getMessage() for record in caplog.records] == ["the writer has died"]
    writer.stop()


def test_a_group_is_one_commit_and_keeps_the_order_of_its_jobs(writer: Writer, connection: apsw.Connection) -> None:
    seen: list[int] = []

    def look(_: apsw.Connection) -> Iterator[None]:
        seen.append(len(written(connection, 1)))
        yield

    with writer.group():
        first = put(writer, 1, b"a")
        put(writer, 1, b"b")
        writer.run_after_pending(Job(look, ("look", 1)))
        last = put(writer, 1, b"c")
        time.sleep(0.05)
        assert not seen
        assert not writer.commits  # the thread has not been woken
    writer.wait(last, timeout=10)  # type: ignore[arg-type]
    assert first.done  # type: ignore[attr-defined]
    assert [row.payload for row in written(connection, 1)] == [b"ab", b"c"]
    assert seen == [1]


def test_commits_are_acknowledged_while_the_store_is_busy(writer: Writer) -> None:
    """A batch holds the store's lock for milliseconds; the answers of the one before it must not wait for that."""
    locked, is_free = Event(), Event()

    def keep_busy() -> None:
        with writer._lock:
            locked.set()
            is_free.wait(10)

    ticket, busy = put(writer, 1), Thread(target=keep_busy)
    busy.start()
    assert locked.wait(10)
    try:
        writer.wait(ticket, timeout=5)  # type: ignore[arg-type]
        asyncio.run(asyncio.wait_for(writer.wait_async(ticket), 5))  # type: ignore[arg-type]
    finally:
        is_free.set()
        busy.join()


def test_a_group_that_fails_loses_nothing_that_was_appended(writer: Writer, connection: apsw.Connection) -> None:
    def fail_in_a_group() -> None:
        with writer.group():
            put(writer, 1, b"a")
            raise OSError("half of it")

    with pytest.raises(OSError, match="half of it"):
        fail_in_a_group()
    writer.wait(put(writer, 1, b"b"), timeout=10)  # type: ignore[arg-type]
    assert b"".join(row.payload for row in written(connection, 1)) == b"ab"


def test_resolve_when_done_resolves_at_once_what_is_done(writer: Writer) -> None:
    async def main() -> None:
        ticket = put(writer, 1)
        await writer.wait_async(ticket)  # type: ignore[arg-type]
        futures = [asyncio.get_running_loop().create_future() for _ in range(2)]
        futures[0].cancel()
        writer.resolve_when_done(ticket, futures)  # type: ignore[arg-type]
        assert [future.cancelled() for future in futures] == [True, False]
        assert futures[1].done()

    asyncio.run(main())
