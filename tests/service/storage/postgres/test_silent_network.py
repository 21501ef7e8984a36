"""A network that acknowledges everything and delivers nothing: every conversation ends, and is begun anew."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import PostgresServer
from replica_load import BANDIT, DIM, create_bandit
from replicas import Replica, run_replicas, wait_for
from tcp_proxy import TcpProxy, Way, run_proxy

from latecomer.errors import StoreError
from latecomer.service.storage.postgres.connection import (
    HOLD_SECONDS,
    USE_SECONDS,
    PostgresConnection,
    session_settings,
)
from latecomer.service.storage.postgres.shared_rows import read_shared_rows

SILENCE, SLACK = 0.5, 5.0
BODY = {"actions": [[0.1] * DIM]}
Talk = Callable[[PostgresConnection], object]
TALKS: dict[str, Talk] = {
    "a statement": lambda connection: connection.execute("SELECT 1"),
    "pages of rows": lambda connection: list(connection.execute("SELECT * FROM head")),
    "many rows": lambda connection: connection.insert_many("setting", [("a", "b"), ("c", "d")]),
    "the end of a transaction": lambda connection: connection.__exit__(None, None, None),
}


def address_through(proxy: TcpProxy, cluster: PostgresServer, database: str) -> str:
    return cluster.url_of(database.rpartition("/")[2], port=proxy.port)


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("talk", TALKS)
def test_a_blocking_conversation_that_hears_nothing_ends(
    cluster: PostgresServer, database: str, talk: str, way: Way
) -> None:
    with (
        run_proxy(cluster.port) as proxy,
        closing(PostgresConnection(address_through(proxy, cluster, database), silence=SILENCE)) as connection,
    ):
        connection.__enter__()
        proxy.swallow(way)
        begun = time.monotonic()
        with pytest.raises(psycopg.OperationalError, match=r"no answer within 0\.5 s"):
            TALKS[talk](connection)
        assert SILENCE <= time.monotonic() - begun < SILENCE + SLACK
        assert connection.raw.closed


def test_a_conversation_that_hears_something_now_and_then_goes_on(cluster: PostgresServer, database: str) -> None:
    with closing(PostgresConnection(database, silence=2 * SILENCE)) as connection:
        slow = "SELECT repeat('x', 100000), pg_sleep(?) FROM generate_series(1, 4)"
        begun = time.monotonic()
        assert len(list(connection.execute(slow, (SILENCE,)))) == 4
        assert time.monotonic() - begun > 3 * SILENCE


@contextmanager
def locked(database: str, table: str) -> Iterator[Any]:
    """Keep a table from being read for the length of a block, or until the connection is closed."""
    with psycopg.connect(database) as connection:
        connection.execute(f"LOCK TABLE latecomer.{table} IN ACCESS EXCLUSIVE MODE")
        yield connection


def test_a_report_gives_up_a_database_that_says_nothing(database: str) -> None:
    """It keeps a thread busy, of which there are few."""
    with locked(database, "log"):
        begun = time.monotonic()
        with pytest.raises(StoreError, match="the log cannot be read until it does"):
            list(read_shared_rows(database, 1, 1, silence=SILENCE))
        assert SILENCE <= time.monotonic() - begun < SILENCE + SLACK


def is_waiting_for_a_lock(cluster: PostgresServer) -> bool:
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'latecomer %' AND wait_event_type = 'Lock'"
    )
    return bool(cluster.execute(query)[0][0])


def test_a_bandit_whose_reading_was_swallowed_is_read_again(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    with run_replicas(database, tmp_path, 1) as (first,):
        create_bandit(first.url)
        assert first.http.post(f"/v1/bandits/{BANDIT}/decisions", json=BODY).status_code == 201
        assert first.stop() == 0
    with run_proxy(cluster.port) as proxy:
        replica = Replica(address_through(proxy, cluster, database), tmp_path, name="behind")
        try:
            with locked(database, "snapshot") as holder:  # only the reading of a bandit needs it
                replica.start(wait=False)
                assert wait_for(lambda: is_waiting_for_a_lock(cluster), 20), replica.log
                assert wait_for(lambda: replica.status("/healthz") == 200, 20)
                assert replica.status("/readyz") == 503, "ready before it has caught up"
                proxy.swallow(Way.TO_CLIENT)
                holder.rollback()
                assert wait_for(lambda: not is_waiting_for_a_lock(cluster), 5)
            time.sleep(0.2)  # the answer is on its way, and lost
            proxy.restore()
            assert wait_for(replica.is_ready, USE_SECONDS + SLACK), replica.log
            answer = replica.http.post(f"/v1/bandits/{BANDIT}/decisions", json=BODY)
            assert (answer.status_code, answer.json().get("round")) == (201, 2)
        finally:
            replica.close()


def connect(database: str) -> psycopg.Connection[Any]:
    return psycopg.connect(database, autocommit=True)


def test_a_session_whose_answer_nobody_takes_loses_its_lock(cluster: PostgresServer, database: str) -> None:
    """It is not idle, and a statement's timeout does not end it while PostgreSQL sends."""
    with closing(connect(database)) as frozen, closing(connect(database)) as other:
        frozen.execute(session_settings(hold=HOLD_SECONDS, statement=5.0).encode())
        lock, large = (
            b"SELECT * FROM latecomer.head FOR UPDATE",
            b"SELECT repeat('x', 1000000) FROM generate_series(1, 99)",
        )
        frozen.pgconn.send_query(b"; ".join([b"BEGIN", lock, large]))
        frozen.pgconn.flush()
        time.sleep(0.5)
        begun = time.monotonic()
        other.execute("SET lock_timeout = '20s'")
        other.execute("SELECT * FROM latecomer.head FOR UPDATE")
        assert time.monotonic() - begun < 2.0, "the lock was not freed"
