"""A rolling restart behind a load balancer: with the retries of the client no error reaches a caller."""

import time
from pathlib import Path

import pytest
from replica_load import PACE, create_bandit, run_load
from replicas import run_replicas, stop_and_check
from tcp_proxy import run_proxy

RETRIES = 6
"""The default of the client."""


def restart_in_turn(database: str, folder: Path, *, rounds: int, pace: float = 0.0, **environment: str) -> None:
    with (
        run_replicas(database, folder, 3, **environment) as replicas,
        run_proxy(*(replica.port for replica in replicas)) as balancer,
    ):
        create_bandit(replicas[0].url)
        url = f"http://127.0.0.1:{balancer.port}"
        with run_load({"balancer": url}, retries=RETRIES, pace=pace) as load:
            for _ in range(rounds):
                for replica in replicas:
                    before = load.acknowledged
                    time.sleep(0.2)
                    assert replica.stop() == 0, replica.log
                    replica.start()
                    assert load.acknowledged > before, "the load has stopped"
            assert load.is_running, "an error reached a caller"
        assert load.history.errors == []
        stop_and_check(load.history, replicas, database, folder)


def test_no_error_reaches_a_caller_during_a_rolling_restart(database: str, tmp_path: Path) -> None:
    restart_in_turn(database, tmp_path, rounds=1, pace=PACE)


@pytest.mark.soak
def test_no_error_reaches_a_caller_during_fifty_rolling_restarts(database: str, tmp_path: Path) -> None:
    restart_in_turn(database, tmp_path, rounds=50, LATECOMER_COMPILE="bulk")
