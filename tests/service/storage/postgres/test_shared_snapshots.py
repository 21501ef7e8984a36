"""Snapshots on PostgreSQL: written before reading a bandit anew would take long, and due until they are written."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import psycopg
import pytest

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.replicated_store import ReplicatedStore
from latecomer.service.storage.postgres import chain_worker, statements
from latecomer.service.storage.postgres.chain_worker import ChainWorker
from latecomer.tiers.tiered_kernel import TieredKernel

SPEC = BanditSpec(dim=2, window=1, policy="OTFLinUCB")
ROWS = np.eye(2)
MANY = 300
"""Events that are enough to measure what applying one takes."""
Scenario = Callable[[ReplicatedStore], Awaitable[None]]


def run(database: str, scenario: Scenario, **options: Any) -> None:
    """Run a scenario on a replica; the bandit exists."""

    async def main() -> None:
        store = await ReplicatedStore.open(database, **options)
        try:
            await store.create("shop", SPEC)
            await scenario(store)
        finally:
            await store.close()

    asyncio.run(main())


async def decide(store: ReplicatedStore, count: int) -> None:
    """Decide so often, in few commits."""
    await asyncio.gather(*(store.decide("shop", ROWS) for _ in range(count)))


def count_snapshots(database: str) -> int:
    with psycopg.connect(database) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM latecomer.snapshot").fetchall()
    return int(count)


async def wait_for_snapshot(database: str) -> bool:
    for _ in range(200):
        if count_snapshots(database):
            return True
        await asyncio.sleep(0.02)
    return False


async def wait_for_writer(worker: ChainWorker) -> None:
    task = worker._snapshots._task
    assert task is not None
    await asyncio.wait([task])


@pytest.mark.parametrize(("reading_seconds", "is_due"), [(1e-6 * MANY, True), (60.0, False)])
def test_a_snapshot_is_due_where_reading_anew_would_take_long(
    database: str, reading_seconds: float, is_due: bool
) -> None:
    run(database, lambda store: decide(store, MANY))

    async def scenario(store: ReplicatedStore) -> None:
        assert not count_snapshots(database)
        await decide(store, 1)

    run(database, scenario, reading_seconds=reading_seconds)  # it waits for a snapshot when it closes
    assert count_snapshots(database) == is_due


def test_what_was_measured_before_machine_code_does_not_count(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(database, lambda store: decide(store, MANY))

    async def scenario(store: ReplicatedStore) -> None:
        worker = store._bandits.get("shop")
        assert worker._chain.event_cost.seconds > 0
        monkeypatch.setattr(TieredKernel, "compiled_kernels", TieredKernel.compiled_kernels + 1)
        await decide(store, 1)

    run(database, scenario, reading_seconds=1e-6 * MANY)
    assert not count_snapshots(database)


def test_a_snapshot_is_due_still_where_the_end_of_its_commit_was_not_seen(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def commit_unseen(connection: Any, *arguments: Any, **named: Any) -> None:
        monkeypatch.setattr(chain_worker, "commit_row", statements.commit_row)
        await statements.commit_row(connection, *arguments, **named)
        await connection.close()
        raise psycopg.OperationalError("the connection is lost")

    async def scenario(store: ReplicatedStore) -> None:
        await decide(store, 9)
        monkeypatch.setattr(chain_worker, "commit_row", commit_unseen)
        await decide(store, 1)
        await decide(store, 1)
        assert (await store.stats("shop")).rounds == 11
        assert await wait_for_snapshot(database)

    run(database, scenario, snapshot_every=10)


def test_a_snapshot_that_could_not_be_written_is_begun_again(database: str) -> None:
    async def scenario(store: ReplicatedStore) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("ALTER TABLE latecomer.snapshot RENAME TO away")
            await decide(store, 10)
            worker = store._bandits.get("shop")
            await wait_for_writer(worker)
            connection.execute("ALTER TABLE latecomer.away RENAME TO snapshot")
        assert store.health.snapshot_failure is not None
        await decide(store, 1)
        assert not count_snapshots(database), "no pause after a failure"
        worker._snapshots._begin_after = 0.0
        await decide(store, 1)
        assert await wait_for_snapshot(database)
        await wait_for_writer(worker)
        assert store.health.snapshot_failure is None

    run(database, scenario, snapshot_every=10)
