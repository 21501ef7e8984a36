"""The connections of a replica are few, and it is ready only when it has caught up."""

import asyncio
import threading
import time
from pathlib import Path

import psycopg
from postgres_server import PostgresServer
from replicas import Replica, run_replicas, wait_for

import latecomer as lc
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.replicated_store import CONNECTIONS, ReplicatedStore

ROWS = [[0.6, 0.0], [0.0, 0.8]]


def test_a_replica_has_a_few_connections_whatever_the_number_of_its_clients(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    with run_replicas(database, tmp_path, 1) as (replica,):
        for number in range(8):
            assert replica.http.put(f"/v1/bandits/b{number}", json={"dim": 2, "window": 100}).status_code == 201
        over = threading.Event()
        clients = [threading.Thread(target=decide_until, args=(replica, f"b{i % 8}", over)) for i in range(32)]
        for client in clients:
            client.start()
        try:
            counts = [count_sessions(cluster, replica) for _ in range(40)]
        finally:
            over.set()
            for client in clients:
                client.join()
        assert 1 < max(counts) <= CONNECTIONS + 1
        assert replica.stop() == 0


def decide_until(replica: Replica, bandit: str, over: threading.Event) -> None:
    while not over.is_set():
        assert replica.http.post(f"/v1/bandits/{bandit}/decisions", json={"actions": ROWS}).status_code == 201


def count_sessions(cluster: PostgresServer, replica: Replica) -> int:
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'latecomer {replica.pid}'"  # noqa: S608
    return int(cluster.execute(query)[0][0])


def test_keys_and_settings_are_read_while_every_other_connection_waits_for_a_lock(database: str) -> None:
    names = [f"b{number}" for number in range(CONNECTIONS)]

    async def main() -> None:
        store = await ReplicatedStore.open(database)
        try:
            for name in names:
                await store.create(name, BanditSpec(dim=2, window=100))
            with psycopg.connect(database) as other:
                other.execute("SELECT * FROM latecomer.head FOR UPDATE")
                decisions = [asyncio.ensure_future(store.decide(name, ROWS)) for name in names]
                await asyncio.sleep(0.5)  # each of them has a connection, and waits
                before = store.settings.read_at
                await asyncio.sleep(1)
                assert store.settings.read_at > before + 0.5
                assert not any(decision.done() for decision in decisions)
                other.rollback()
            assert [answer.round for answer in await asyncio.gather(*decisions)] == [1] * CONNECTIONS
        finally:
            await store.close()

    asyncio.run(main())


def test_a_bandit_is_read_while_every_other_thread_is_busy(database: str) -> None:
    """As those of snapshots and reports may be, for minutes."""

    async def main() -> None:
        one, other = await ReplicatedStore.open(database), await ReplicatedStore.open(database)
        over = threading.Event()
        busy = [asyncio.create_task(asyncio.to_thread(over.wait)) for _ in range(64)]  # more than there are threads
        try:
            await one.create("shop", BanditSpec(dim=2, window=100))
            await other.find("shop")  # it has to read it
            assert (await asyncio.wait_for(other.decide("shop", ROWS), 4)).round == 1
        finally:
            over.set()
            await asyncio.gather(*busy)
            await one.close()
            await other.close()

    asyncio.run(main())


def test_a_replica_that_was_away_is_ready_when_it_has_caught_up(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    """The rows of others cannot be read for a while after the database has come back: until then it is not ready."""
    with run_replicas(database, tmp_path, 1) as (replica,):
        path = "/v1/bandits/offers/decisions"
        assert replica.http.put("/v1/bandits/offers", json={"dim": 2, "window": 100}).status_code == 201
        assert replica.http.post(path, json={"actions": ROWS}).status_code == 201
        replica.freeze()
        with lc.open(database, name="offers") as bandit:
            assert bandit.decide(ROWS).round == 2
        cluster.stop()
        replica.resume()
        assert wait_for(lambda: replica.status("/readyz") == 503, 10)
        cluster.start()
        with psycopg.connect(database) as holder:
            holder.execute("LOCK TABLE latecomer.log IN ACCESS EXCLUSIVE MODE")
            time.sleep(2.0)
            assert replica.status("/readyz") == 503, "ready before it has caught up"
            holder.rollback()
        assert wait_for(replica.is_ready, 10), replica.log
        assert replica.stats("offers")["rounds"] == 2
        assert replica.stop() == 0
