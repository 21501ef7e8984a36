"""The PostgreSQL of the tests: it is durable, and it outlives every way to end it."""

from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer, cluster_folder


def count(cluster: PostgresServer, url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM kept").fetchone()
    assert row is not None
    return int(row[0])


def add(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (number int)")
        connection.execute("INSERT INTO kept VALUES (1)")


def test_each_database_is_empty_and_apart(cluster: PostgresServer) -> None:
    first, second = cluster.create_database(), cluster.create_database()
    add(first)
    with psycopg.connect(second) as connection, pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM kept")
    assert cluster.execute("SHOW fsync") == [("on",)]


@pytest.mark.parametrize("way", [PostgresServer.stop, PostgresServer.stop_immediately, PostgresServer.kill])
def test_commits_outlive_an_end_and_the_address_stays(cluster: PostgresServer, way: object) -> None:
    url, port = cluster.create_database(), cluster.port
    for commits in (1, 2):
        add(url)
        assert callable(way)
        way(cluster)
        assert not cluster.is_running
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=2)
        cluster.start()
        assert (cluster.port, count(cluster, url)) == (port, commits)


def test_a_promoted_standby_has_every_commit() -> None:
    with cluster_folder() as folder:
        primary = PostgresServer(folder / "first")
        primary.initialise()
        standby: PostgresServer | None = None
        try:
            primary.start()
            name = "shop"
            primary.create_database(name)
            standby = primary.make_standby(Path(folder / "second"))
            primary.require_standby()
            add(primary.url_of(name))
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                add(standby.url_of(name))
            primary.kill()
            standby.promote()
            assert count(standby, standby.url_of(name)) == 1
            add(standby.url_of(name))
            assert count(standby, standby.url_of(name)) == 2
        finally:
            primary.kill()
            if standby is not None:
                standby.kill()
