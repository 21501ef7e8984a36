"""A replica frozen while it holds a bandit's lock: the others go on, and it acknowledges nothing that is not kept."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from replica_load import QUICK, RETRY_LIMIT, create_bandit, run_load
from replicas import Replica, run_replicas, stop_and_check

SEARCH_LIMIT, FROZEN, OTHERS_GO_ON = 60.0, 3.0, 2.0
SESSIONS = """
    SELECT application_name FROM pg_stat_activity
    WHERE datname = '{database}' AND application_name LIKE 'latecomer %' AND backend_xid IS NOT NULL
"""
"""Sessions inside a transaction that has written, or locked a row."""


def freeze_a_lock_holder(cluster: PostgresServer, database: str, replicas: list[Replica]) -> Replica:
    """Stop replicas that hold a lock, until one is stopped in time: its transaction is open, and waits for it."""
    by_pid = {replica.pid: replica for replica in replicas}
    inside = SESSIONS.format(database=database.rpartition("/")[2])
    waiting = f"{inside} AND state = 'idle in transaction'"
    end = time.monotonic() + SEARCH_LIMIT
    while time.monotonic() < end:
        for (name,) in cluster.execute(inside):
            pid = int(name.removeprefix("latecomer "))
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.03)  # what it had sent before is executed
            if (name,) in cluster.execute(waiting):
                return by_pid[pid]
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.005)
    raise AssertionError("no replica was found that holds a lock")


def describe_sessions(cluster: PostgresServer) -> str:
    """Return what every session does, and whom it waits for."""
    rows = cluster.execute(
        "SELECT pid, application_name, state, pg_blocking_pids(pid), now() - xact_start, left(query, 100) "
        "FROM pg_stat_activity WHERE application_name LIKE 'latecomer %' AND xact_start IS NOT NULL"
    )
    return "\n".join(map(str, rows))


def freeze(cluster: PostgresServer, database: str, folder: Path, *, cycles: int, policy: str = "recommended") -> None:
    with run_replicas(database, folder) as replicas:
        create_bandit(replicas[0].url, policy=policy)
        addresses = {replica.name: replica.url for replica in replicas}
        with run_load(addresses) as load:
            probes = {name: load.add_client(*(other for other in addresses if other != name)) for name in addresses}
            own = {name: load.add_client(name) for name in addresses}
            for _ in range(cycles):
                frozen = freeze_a_lock_holder(cluster, database, replicas)
                begun = time.monotonic()
                probe = threading.Thread(target=probes[frozen.name].decide)
                probe.start()
                try:
                    probe.join(OTHERS_GO_ON)
                    waited = time.monotonic() - begun
                    assert not probe.is_alive(), f"{frozen.pid} is frozen, others wait: {describe_sessions(cluster)}"
                    time.sleep(max(0.0, FROZEN - waited))
                finally:
                    frozen.resume()
                    probe.join(RETRY_LIMIT)
                own[frozen.name].decide()  # it serves again
        stop_and_check(load.history, replicas, database, folder)


def test_a_replica_frozen_with_the_lock_stops_nobody_and_acknowledges_nothing_false(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    freeze(cluster, database, tmp_path, cycles=1, policy=QUICK)


@pytest.mark.soak
def test_a_replica_frozen_with_the_lock_30_cycles(cluster: PostgresServer, database: str, tmp_path: Path) -> None:
    freeze(cluster, database, tmp_path, cycles=30)
