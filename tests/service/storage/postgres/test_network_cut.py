"""The network between one replica and the database fails: no false success, the others go on, recovery by itself."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from history import read_log
from history_checker import check_history
from postgres_server import PostgresServer
from replica_load import BANDIT, DIM, PACE, QUICK, create_bandit, run_load
from replicas import Replica, agree, init_store, run_replicas, wait_for
from servers import error_of
from tcp_proxy import TcpProxy, Way, run_proxy

OTHERS_GO_ON, PATIENCE, RECOVERY = 3.0, 9.0, 15.0
FAULTS: dict[str, Callable[[TcpProxy], None]] = {
    "nothing passes": lambda proxy: proxy.drop(),
    "answers of the database are lost": lambda proxy: proxy.drop(Way.TO_CLIENT),
    "statements are lost": lambda proxy: proxy.drop(Way.TO_TARGET),
    "everything is acknowledged and lost": lambda proxy: proxy.swallow(),
    "connections are reset": lambda proxy: proxy.cut(),
    "the database seems to hang up": lambda proxy: proxy.half_close(Way.TO_CLIENT),
    "the replica seems to hang up": lambda proxy: proxy.half_close(Way.TO_TARGET),
    "everything is slow": lambda proxy: proxy.delay(0.15),
}


class Trio(NamedTuple):
    """A database with two replicas beside it, and one behind a network that can be broken."""

    database: str
    proxy: TcpProxy
    direct: list[Replica]
    behind: Replica


@contextmanager
def run_trio(cluster: PostgresServer, database: str, folder: Path) -> Iterator[Trio]:
    with run_proxy(cluster.port) as proxy:
        behind = Replica(cluster.url_of(database.rpartition("/")[2], port=proxy.port), folder, name="behind")
        try:
            with run_replicas(database, folder, 2) as direct:
                behind.start()
                yield Trio(database, proxy, direct, behind)
                assert behind.stop() == 0, behind.log
        finally:
            behind.close()


def break_network(
    trio: Trio,
    faults: list[tuple[str, float]],
    *,
    resets: bool = False,
    pace: float = 0.0,
    bandit: str = BANDIT,
    policy: str = "recommended",
) -> None:
    """Let each fault last for some seconds; with `resets`, old connections are reset when it ends."""
    database, proxy, direct, behind = trio
    create_bandit(direct[0].url, bandit=bandit, policy=policy)
    addresses = {replica.name: replica.url for replica in (*direct, behind)}
    with run_load(addresses, pace=pace, bandit=bandit) as load:
        other, own = load.add_client(*(replica.name for replica in direct)), load.add_client("behind")
        own.decide()
        for fault, seconds in faults:
            begun = time.monotonic()
            FAULTS[fault](proxy)
            other.decide()
            waited = time.monotonic() - begun
            assert waited < OTHERS_GO_ON, f"{fault}: the others waited {waited:.1f} s"
            time.sleep(max(0.0, seconds - waited))
            if resets:
                proxy.reset()
            proxy.restore()
            restored = time.monotonic()
            own.decide()
            assert time.monotonic() - restored < RECOVERY, f"{fault}: no recovery"
    assert wait_for(behind.is_ready, RECOVERY)
    check_history(load.history, read_log(database, bandit))
    agree([*direct, behind], bandit)


@pytest.fixture(scope="module")
def trio(_cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Replicas that go through every fault, each with a bandit of its own."""
    _cluster.ensure_running()
    with run_trio(_cluster, init_store(_cluster.create_database()), tmp_path_factory.mktemp("trio")) as running:
        yield running


@pytest.mark.parametrize("fault", FAULTS)
def test_a_replica_acknowledges_nothing_false_when(trio: Trio, fault: str) -> None:
    break_network(trio, [(fault, 1.5)], pace=PACE, bandit=fault.replace(" ", "-"), policy=QUICK)


@pytest.mark.soak
@pytest.mark.parametrize("resets", [False, True])
def test_a_network_that_fails_again_and_again(
    cluster: PostgresServer, database: str, tmp_path: Path, resets: bool
) -> None:
    chance = random.Random(int(resets))  # noqa: S311
    faults = [(chance.choice(list(FAULTS)), chance.uniform(0.1, 12.0)) for _ in range(60)]
    with run_trio(cluster, database, tmp_path) as trio:
        break_network(trio, faults, resets=resets)


def test_a_replica_cut_off_from_the_database_answers_503_and_is_not_ready(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    body = {"actions": [[0.1] * DIM], "request_id": "while it was cut off"}
    with run_proxy(cluster.port) as proxy:
        url = cluster.url_of(database.rpartition("/")[2], port=proxy.port)
        with run_replicas(url, tmp_path, 1) as (replica,):
            create_bandit(replica.url)
            decide = partial(replica.http.post, f"/v1/bandits/{BANDIT}/decisions", json=body)
            proxy.drop()
            begun = time.monotonic()
            refused = decide()
            assert (refused.status_code, error_of(refused)["code"]) == (503, "unavailable")
            assert time.monotonic() - begun < PATIENCE
            assert wait_for(lambda: replica.status("/readyz") == 503, PATIENCE)
            assert replica.status("/healthz") == 200  # a restart would not help
            proxy.reset()
            proxy.restore()
            assert wait_for(lambda: decide().status_code == 201, RECOVERY)
            assert wait_for(replica.is_ready, RECOVERY)
            assert decide().json()["round"] == 1, "the request that was refused was counted beside its repetition"
