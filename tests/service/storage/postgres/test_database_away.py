"""The database gone and back, and its failover to a standby: 503 meanwhile, and recovery by itself."""

import threading
import time
from functools import partial
from pathlib import Path

import httpx
import pytest
from history import read_log
from history_checker import check_history
from postgres_server import PostgresServer, cluster_folder, run_postgres
from replica_load import BANDIT, DIM, PACE, QUICK, create_bandit, run_load
from replicas import Replica, agree, check_bits, init_store, run_replicas, stop_all, wait_for
from servers import error_of
from tcp_proxy import run_proxy

PATIENCE, RECOVERY = 9.0, 5.0
BODY = {"actions": [[0.1] * DIM]}


def is_unready(replica: Replica) -> bool:
    return replica.status("/readyz") == 503


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_database_that_is_gone_is_a_503_until_it_is_back(
    cluster: PostgresServer, database: str, tmp_path: Path, count: int
) -> None:
    with run_replicas(database, tmp_path, count) as replicas:
        create_bandit(replicas[0].url, policy=QUICK)
        path = f"/v1/bandits/{BANDIT}/decisions"
        first = replicas[0].http.post(path, json=BODY).json()
        cluster.stop()
        for replica in replicas:
            decide = partial(replica.http.post, path, json={**BODY, "request_id": f"away-{replica.name}"})
            begun = time.monotonic()
            refused = decide()
            assert time.monotonic() - begun < PATIENCE
            assert (refused.status_code, error_of(refused)["code"]) == (503, "unavailable")
            report = replica.http.post(f"/v1/bandits/{BANDIT}/conversions", json={"decision_id": first["decision_id"]})
            assert (report.status_code, error_of(report)["code"]) == (503, "unavailable")
            assert wait_for(partial(is_unready, replica), PATIENCE)
            assert error_of(replica.http.get("/readyz"))["code"] == "unavailable"
            assert replica.status("/healthz") == 200
        cluster.start()
        returned = time.monotonic()
        for replica in replicas:
            assert wait_for(replica.is_ready, 2 * RECOVERY), replica.log
        assert time.monotonic() - returned < RECOVERY
        answers = [replica.http.post(path, json={**BODY, "request_id": f"away-{replica.name}"}) for replica in replicas]
        assert [answer.status_code for answer in answers] == [201] * count
        assert {answer.json()["round"] for answer in answers} == set(range(2, 2 + count)), (
            "a refused request was counted"
        )
        counts = agree(replicas, BANDIT)["conversions"]
        assert (counts["accepted"], counts["duplicate"]) == (0, 0), "a refused report was counted"


def test_a_request_outlives_a_database_that_is_back_within_its_patience(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    """No client tries again here: the replica does, and decides once."""
    with run_replicas(database, tmp_path, 1) as (replica,):
        create_bandit(replica.url)
        answers: list[httpx.Response] = []
        path = f"/v1/bandits/{BANDIT}/decisions"
        cluster.kill()
        asking = threading.Thread(target=lambda: answers.append(replica.http.post(path, json=BODY)))
        asking.start()
        cluster.start()
        asking.join(20)
        assert [(answer.status_code, answer.json().get("round")) for answer in answers] == [(201, 1)], replica.log
        assert replica.stop() == 0


def fail_over(
    folder: Path, *, count: int = 3, before: int = 100, pace: float = 0.02, policy: str = "recommended"
) -> None:
    """Promote the standby under load; a proxy is the address that moves with the database."""
    with cluster_folder() as clusters, run_postgres(clusters / "first") as primary:
        primary.create_database("shop")
        standby = primary.make_standby(clusters / "second")
        try:
            primary.require_standby()
            with run_proxy(primary.port) as proxy:
                url = primary.url_of("shop", port=proxy.port)
                init_store(url)
                with run_replicas(url, folder, count) as replicas:
                    create_bandit(replicas[0].url, policy=policy)
                    with run_load({replica.name: replica.url for replica in replicas}, pace=pace) as load:
                        probes = [load.add_client(replica.name) for replica in replicas]
                        load.wait_for_more(before)
                        proxy.cut()  # nobody is told anything by the old server any more
                        primary.kill()
                        standby.promote()
                        proxy.retarget(("127.0.0.1", standby.port))
                        proxy.restore()
                        returned = time.monotonic()
                        for probe in probes:
                            probe.decide()
                        assert time.monotonic() - returned < 2 * RECOVERY
                    check_history(load.history, read_log(url, BANDIT))
                    stats = agree(replicas, BANDIT)
                    stop_all(replicas)
                check_bits(url, BANDIT, stats, folder)
        finally:
            standby.kill()


def test_a_failover_to_a_standby_loses_nothing_acknowledged(tmp_path: Path) -> None:
    fail_over(tmp_path, count=2, before=50, pace=PACE, policy=QUICK)


@pytest.mark.soak
@pytest.mark.parametrize("time_", range(10))
def test_a_failover_to_a_standby_ten_times(tmp_path: Path, time_: int) -> None:
    fail_over(tmp_path)
