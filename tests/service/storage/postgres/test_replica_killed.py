"""kill -9 of replicas under load: nothing acknowledged is lost, nothing counts twice, the others go on."""

import random
import time
from pathlib import Path

import pytest
from history import read_log
from history_checker import check_history
from replica_load import BANDIT, PACE, QUICK, create_bandit, run_load
from replicas import agree, run_replicas, stop_and_check


def kill_replicas(
    database: str, folder: Path, *, cycles: int, pace: float = 0.0, policy: str = "recommended", **environment: str
) -> None:
    chance = random.Random(cycles)  # noqa: S311
    with run_replicas(database, folder, 3, **{"LATECOMER_SNAPSHOT_EVERY": "500", **environment}) as replicas:
        create_bandit(replicas[0].url, policy=policy)
        with run_load({replica.name: replica.url for replica in replicas}, pace=pace) as load:
            for cycle in range(cycles):
                load.wait_for_more(5)
                time.sleep(chance.uniform(0.0, 0.1))
                killed = chance.choice(replicas)
                killed.kill()
                killed.start(wait=False)
                if cycle % 3 == 2:  # otherwise the next one may be killed while this one starts
                    killed.wait_until_ready()
            for replica in replicas:
                replica.wait_until_ready()
        stop_and_check(load.history, replicas, database, folder)


def test_a_killed_replica_loses_nothing_acknowledged_6_cycles(database: str, tmp_path: Path) -> None:
    kill_replicas(database, tmp_path, cycles=6, pace=PACE, policy=QUICK, LATECOMER_SNAPSHOT_EVERY="100")


@pytest.mark.soak
def test_a_killed_replica_loses_nothing_acknowledged_300_cycles(database: str, tmp_path: Path) -> None:
    kill_replicas(database, tmp_path, cycles=300, LATECOMER_COMPILE="bulk")


def test_all_replicas_killed_at_once_lose_nothing_acknowledged(database: str, tmp_path: Path) -> None:
    with run_replicas(database, tmp_path) as replicas:
        create_bandit(replicas[0].url, policy=QUICK)
        with run_load({replica.name: replica.url for replica in replicas}, pace=PACE) as load:
            load.wait_for_more(50)
            for replica in replicas:
                replica.kill()
            for replica in replicas:
                replica.start()
        check_history(load.history, read_log(database, BANDIT))
        agree(replicas, BANDIT)
