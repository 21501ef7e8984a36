"""A row whose commit failed or was not seen is in the log once, or its calls are run again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from latecomer.errors import ConflictError, InputError, QuarantinedError, StoreError, UnknownBanditError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.replicated_store import ReplicatedStore
from latecomer.service.storage.postgres import chain_worker, statements
from latecomer.service.storage.postgres.registry_chain import RegistryChain
from latecomer.service.tools.verify import verify

SPEC = BanditSpec(dim=2, window="7d", policy="OTFLinUCB")
ROWS = np.eye(2)
Scenario = Callable[[ReplicatedStore, ReplicatedStore], Awaitable[None]]


def run(database: str, scenario: Scenario, **options: Any) -> None:
    """Run a scenario on two replicas with a bandit."""

    async def main() -> None:
        one, other = await ReplicatedStore.open(database, **options), await ReplicatedStore.open(database)
        try:
            await one.create("shop", SPEC)
            await scenario(one, other)
        finally:
            await one.close()
            await other.close()

    asyncio.run(main())
    assert list(verify(database))[-1].startswith("shop: ")


def fail_once(monkeypatch: pytest.MonkeyPatch, *, after: bool, meanwhile: Callable[[], Awaitable[Any]] | None) -> None:
    """Let the next commit fail, before it is sent or after it has succeeded; `meanwhile` others may act."""
    good = statements.commit_row
    calls: list[int] = []

    async def commit_row(connection: Any, *arguments: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) > 1:
            await good(connection, *arguments, **named)
            return
        if after:
            await good(connection, *arguments, **named)
        await connection.close()
        if meanwhile is not None:
            calls.append(1)
            await meanwhile()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(chain_worker, "commit_row", commit_row)


def test_a_commit_that_succeeded_unseen_is_acknowledged_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(one: ReplicatedStore, other: ReplicatedStore) -> None:
        first = await one.decide("shop", ROWS, request_id="a")
        fail_once(monkeypatch, after=True, meanwhile=None)
        second = await one.decide("shop", ROWS, request_id="b")
        assert (first.round, second.round) == (1, 2)
        assert (await other.stats("shop")).rounds == 2
        assert await other.decide("shop", ROWS, request_id="b") == second

    run(database, scenario)


def test_a_commit_that_was_not_sent_is_tried_again_as_it_was(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(one: ReplicatedStore, other: ReplicatedStore) -> None:
        fail_once(monkeypatch, after=False, meanwhile=None)
        decided: list[int] = []
        monkeypatch.setattr(Bandit, "decide", _counting(Bandit.decide, decided))
        answer = await one.decide("shop", ROWS)
        assert (answer.round, len(decided)) == (1, 1)
        assert (await other.stats("shop")).rounds == 1

    run(database, scenario)


def _counting(method: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        return method(*arguments, **named)

    return counted


def test_calls_are_run_again_where_another_replica_was_faster(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(one: ReplicatedStore, other: ReplicatedStore) -> None:
        await other.find("shop")
        fail_once(monkeypatch, after=False, meanwhile=lambda: other.decide("shop", ROWS, request_id="theirs"))
        mine = await one.decide("shop", ROWS, request_id="mine")
        assert mine.round == 2
        theirs = await one.decide("shop", ROWS, request_id="theirs")
        assert theirs.round == 1
        assert await one.stats("shop") == await other.stats("shop")
        assert await one.convert("shop", [Conversion(theirs.decision_id)]) == ["accepted"]
        assert await other.convert("shop", [Conversion(theirs.decision_id)]) == ["duplicate"]

    run(database, scenario)


def test_an_error_in_a_batch_is_the_answer_to_its_own_call(database: str) -> None:
    async def scenario(one: ReplicatedStore, other: ReplicatedStore) -> None:
        calls: list[Awaitable[Any]] = [
            one.decide("shop", ROWS, request_id="a"),
            one.decide("shop", ROWS[:1], request_id="a"),
            one.decide("shop", 2 * ROWS),
            one.decide("shop", ROWS, request_id="a"),
            one.convert("shop", [Conversion("nobody")]),
        ]
        first, changed, long, again, verdicts = await asyncio.gather(*calls, return_exceptions=True)
        assert (type(changed), type(long)) == (ConflictError, InputError)
        assert first == again
        assert verdicts == ["unknown"]
        assert (await other.stats("shop")).conversions["unknown"] == 1

    run(database, scenario)


def test_a_call_that_breaks_half_way_leaves_no_trace(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(one: ReplicatedStore, other: ReplicatedStore) -> None:
        await one.decide("shop", ROWS)
        good = Bandit.find_expiry

        def broken(self: Bandit, *_: Any, **__: Any) -> Any:
            monkeypatch.setattr(Bandit, "find_expiry", good)
            raise RuntimeError("after the policy has changed")

        monkeypatch.setattr(Bandit, "find_expiry", broken)
        with pytest.raises(RuntimeError):
            await one.decide("shop", ROWS)
        assert (await one.decide("shop", ROWS)).round == 2
        assert await one.stats("shop") == await other.stats("shop")

    run(database, scenario)


async def wait_for_snapshots(database: str) -> None:
    """Wait until two snapshots are there, and no other is being written, for which one of them is discarded first."""
    found: list[Any] = []
    for _ in range(100):
        before = found
        with psycopg.connect(database) as connection:
            found = connection.execute("SELECT key FROM latecomer.snapshot ORDER BY key").fetchall()
        if len(found) == 2 and found == before:
            return
        await asyncio.sleep(0.3)


def test_snapshots_compaction_and_retention_leave_the_same_state(database: str) -> None:
    async def scenario(one: ReplicatedStore, other: ReplicatedStore) -> None:
        for i in range(120):
            await one.decide("shop", ROWS, request_id=f"r{i}")
        await wait_for_snapshots(database)
        late = await ReplicatedStore.open(database)
        try:
            assert await late.stats("shop") == await one.stats("shop")
            assert (await late.decide("shop", ROWS, request_id="r3")).round == 4
        finally:
            await late.close()

    run(database, scenario, snapshot_every=30)
    with psycopg.connect(database) as connection:
        query = "SELECT count(*), max(commits) FROM latecomer.log WHERE key > 1099511627776"
        rows, most = connection.execute(query).fetchone() or (0, 0)
        (snapshots,) = connection.execute("SELECT count(*) FROM latecomer.snapshot").fetchone() or (0,)
    assert rows < 100
    assert most > 8
    assert snapshots == 2


def test_a_damaged_row_quarantines_its_bandit_alone(database: str, tmp_path: Path) -> None:
    async def prepare() -> None:
        store = await ReplicatedStore.open(database)
        await store.create("shop", SPEC)
        await store.create("news", SPEC)
        for name in ("shop", "news"):
            await store.decide(name, ROWS)
        await store.close()

    async def look() -> None:
        store = await ReplicatedStore.open(database)
        try:
            with pytest.raises(QuarantinedError, match="row 2 of chain 1 of the log is damaged"):
                store.decide("shop", ROWS)
            assert (await store.decide("news", ROWS)).round == 2
            assert list(store.quarantined) == ["shop"]
        finally:
            await store.close()

    asyncio.run(prepare())
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE latecomer.log SET rounds = rounds + 1 WHERE key = (1::bigint << 40) + 2")
    asyncio.run(look())


def test_a_closed_store_refuses(database: str) -> None:
    async def main() -> None:
        store = await ReplicatedStore.open(database)
        await store.create("shop", SPEC)
        await store.close()
        with pytest.raises(StoreError, match="the store is closed: open it again"):
            store.decide("shop", ROWS)

    asyncio.run(main())


async def find_while_known(store: ReplicatedStore, name: str) -> None:
    """Find a bandit again and again: a replica that has heard of it hears of its end within a second."""
    for _ in range(100):
        await store.find(name)
        await asyncio.sleep(0.05)


def test_a_deletion_whose_commit_fails_is_tried_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = RegistryChain.commit_deletion
    calls: list[int] = []

    async def commit_deletion(self: RegistryChain, connection: Any, number: int, stamp: int) -> None:
        calls.append(number)
        if len(calls) == 1:
            raise psycopg.OperationalError("the connection is lost")
        await good(self, connection, number, stamp)

    async def main() -> None:
        one, other = await ReplicatedStore.open(database), await ReplicatedStore.open(database)
        monkeypatch.setattr(RegistryChain, "commit_deletion", commit_deletion)
        try:
            await one.create("shop", SPEC)
            await one.delete("shop")
            with pytest.raises(UnknownBanditError):
                await find_while_known(other, "shop")
            with pytest.raises(UnknownBanditError):
                await one.delete("shop")
        finally:
            await one.close()
            await other.close()

    asyncio.run(main())
    assert calls == [1, 1]


def test_a_replica_follows_a_database_that_has_lost_commits(database: str) -> None:
    """As after a failover to a standby that lagged behind: the replica knows more than the log."""

    async def main() -> None:
        store = await ReplicatedStore.open(database)
        try:
            await store.create("shop", SPEC)
            first, second = [await store.decide("shop", ROWS) for _ in range(2)]
            await store.create("news", SPEC)
            with psycopg.connect(database) as connection:
                _lose_last_row(connection, 1)
                _lose_last_row(connection, 0)
                connection.execute("DELETE FROM latecomer.log WHERE key > 2::bigint << 40")
                connection.execute("DELETE FROM latecomer.head WHERE bandit = 2")
            third = await store.decide("shop", ROWS)
            assert (third.round, third.decision_id != second.decision_id) == (2, True)
            assert await store.convert("shop", [Conversion(first.decision_id)]) == ["accepted"]
            assert await store.convert("shop", [Conversion(second.decision_id)]) == ["unknown"]
            assert (await store.create("more", SPEC))[1]
            assert store.quarantined == {}
        finally:
            await store.close()

    asyncio.run(main())
    assert [line.partition(":")[0] for line in list(verify(database))[1:]] == ["shop", "more"]


def _lose_last_row(connection: Any, chain: int) -> None:
    last = f"(SELECT max(key) FROM latecomer.log WHERE key BETWEEN {chain}::bigint << 40 AND {chain + 1}::bigint << 40)"  # noqa: S608
    connection.execute(f"DELETE FROM latecomer.log WHERE key = {last}")  # noqa: S608
    query = f"SELECT key & 1099511627775, checksum, stamp FROM latecomer.log WHERE key = {last}"  # noqa: S608
    values = (*connection.execute(query).fetchone(), chain)
    connection.execute("UPDATE latecomer.head SET seq = %s, checksum = %s, stamp = %s WHERE bandit = %s", values)
