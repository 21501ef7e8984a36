"""PostgreSQL shut down at once and killed under load: nothing acknowledged is lost, and service resumes within 5 s."""

import random
import time
from functools import partial
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from replica_load import DIM, PACE, QUICK, create_bandit, run_load
from replicas import Replica, run_replicas, stop_and_check, wait_for

RECOVERY = 5.0
"""Seconds from the return of the database to the first decision of every replica."""


def decides(replica: Replica) -> bool:
    body = {"actions": [[0.1] * DIM]}
    return replica.http.post("/v1/bandits/probe/decisions", json=body).status_code == 201


def end_database(
    cluster: PostgresServer,
    database: str,
    folder: Path,
    *,
    cycles: int,
    pace: float = 0.0,
    policy: str = "recommended",
) -> None:
    chance = random.Random(cycles)  # noqa: S311
    with run_replicas(database, folder) as replicas:
        create_bandit(replicas[0].url, policy=policy)
        create_bandit(replicas[0].url, bandit="probe", policy=policy)
        with run_load({replica.name: replica.url for replica in replicas}, pace=pace) as load:
            for cycle in range(cycles):
                load.wait_for_more(10)
                time.sleep(chance.uniform(0.0, 0.1))
                (cluster.stop_immediately if cycle % 2 else cluster.kill)()
                time.sleep(chance.uniform(0.0, 0.2))
                cluster.start()
                returned = time.monotonic()
                for replica in replicas:
                    assert wait_for(partial(decides, replica), 2 * RECOVERY), replica.log[-2000:]
                assert time.monotonic() - returned < RECOVERY, f"the recovery took too long in cycle {cycle}"
        stop_and_check(load.history, replicas, database, folder)


def test_a_killed_database_loses_nothing_acknowledged_2_cycles(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    """A kill, and an immediate stop."""
    end_database(cluster, database, tmp_path, cycles=2, pace=PACE, policy=QUICK)


@pytest.mark.soak
def test_a_killed_database_loses_nothing_acknowledged_100_cycles(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    end_database(cluster, database, tmp_path, cycles=100)
