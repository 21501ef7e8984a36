"""Deadlocks and serialization errors: the transaction is tried again, and no caller hears of them."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from postgres_server import PostgresServer
from replicas import run_cli, wait_for

import latecomer as lc
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.replicated_store import ReplicatedStore

ROWS = [[0.6, 0.0], [0.0, 0.8]]
FAILING = """
    CREATE SEQUENCE latecomer.attempts;
    CREATE FUNCTION latecomer.fail() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('latecomer.attempts') % 3 = 1 THEN
            RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '{code}';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON latecomer.log FOR EACH ROW EXECUTE FUNCTION latecomer.fail();
"""
"""The first, fourth, seventh … row is refused."""


@pytest.mark.parametrize("code", ["40001", "40P01"], ids=["serialization", "deadlock"])
def test_a_transaction_that_the_database_ends_is_tried_again(database: str, code: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(FAILING.replace("{code}", code).encode())
    troubles: list[str | None] = []

    async def main() -> None:
        store = await ReplicatedStore.open(database)
        store.listen(on_commit=lambda *_: None, on_trouble=troubles.append)
        try:
            await store.create("offers", BanditSpec(dim=2, window=1000))
            for number in range(8):
                answer = await store.decide("offers", ROWS, request_id=f"r{number}")
                assert answer.round == number + 1
                assert await store.convert("offers", [Conversion(answer.decision_id)]) == ["accepted"]
            await store.delete("offers")
        finally:
            await store.close()

    asyncio.run(main())
    assert troubles == [], "the database seemed to be away"
    assert run_cli("log", "verify", database).splitlines()[-1] == "whole"
    with psycopg.connect(database) as connection:
        ((attempts,),) = connection.execute("SELECT last_value FROM latecomer.attempts").fetchall()
    assert attempts > 25


def test_a_real_deadlock_ends_with_both_changes(cluster: PostgresServer, database: str) -> None:
    """A deletion holds the store's chain and waits for the bandit's; another session does it the other way round."""
    with run_deletion(database) as (deletion, other):
        assert wait_for(lambda: is_waiting(cluster), 5)
        other.execute("SELECT * FROM latecomer.head WHERE bandit = 0 FOR UPDATE")
        other.rollback()
        deletion.join(10)
        assert not deletion.is_alive()
    with lc.open(database, name="offers", dim=2, window=1000) as bandit:
        assert bandit.stats().rounds == 0, "it was not deleted"
    assert "deadlock detected" in cluster.log


@contextmanager
def run_deletion(database: str) -> Iterator[tuple[threading.Thread, psycopg.Connection[tuple[object, ...]]]]:
    """Begin to delete a bandit whose chain another session has locked."""
    with lc.open(database, name="offers", dim=2, window=1000) as bandit:
        bandit.decide(ROWS)
        with psycopg.connect(database) as other:
            other.execute("SET deadlock_timeout = '60s'")  # so that the other side is the one that is ended
            other.execute("SELECT * FROM latecomer.head WHERE bandit = 1 FOR UPDATE")
            command = ("log", "delete", database, "--bandit", "offers", "--confirm", "offers")
            deletion = threading.Thread(target=run_cli, args=command)
            deletion.start()
            try:
                yield deletion, other
            finally:
                other.rollback()
                deletion.join(20)


def is_waiting(cluster: PostgresServer) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%DELETE FROM head%'"
    ((count,),) = cluster.execute(query)
    return bool(count)
