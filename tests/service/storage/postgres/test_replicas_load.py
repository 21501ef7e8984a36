"""Three replicas under a mixed load: exact as one process, and the same bits everywhere."""

from collections import Counter
from pathlib import Path

import pytest
from history import read_log
from history_checker import check_history
from postgres_server import PostgresServer
from replica_load import BANDIT, QUICK, Load, create_bandit
from replicas import agree, check_bits, run_replicas, stop_all

CLIENTS = 16


def mixed_load(
    database: str, folder: Path, *, events: int, batch: int, seconds: float, policy: str = "recommended", **env: str
) -> None:
    """Sixteen clients: a decision for about every `batch` / 3 reports, most of which are duplicates."""
    with run_replicas(database, folder, 3, **env) as replicas:
        create_bandit(replicas[0].url, policy=policy)
        load = Load({replica.name: replica.url for replica in replicas}, clients=CLIENTS, batch=batch)
        load.start(events=events)
        load.join(seconds)
        assert load.acknowledged >= events * 0.95, "clients were refused without a fault"
        log = read_log(database, BANDIT)
        check_history(load.history, log)
        stats = agree(replicas, BANDIT)
        verdicts = Counter((report.kind, report.verdict) for report in log.reports)
        assert stats["rounds"] == len(log.decisions)
        assert stats["conversions"]["accepted"] == verdicts["conversion", "accepted"]
        assert stats["conversions"]["duplicate"] == verdicts["conversion", "duplicate"]
        assert stats["revocations"]["accepted"] == verdicts["revocation", "accepted"]
        asked = {record.replica for record in load.history.decisions}
        assert asked == {replica.name for replica in replicas}
        stop_all(replicas)
    check_bits(database, BANDIT, stats, folder)


def test_two_thousand_events_on_three_replicas_are_exact(database: str, tmp_path: Path) -> None:
    mixed_load(database, tmp_path, events=2_000, batch=60, seconds=120, policy=QUICK)


@pytest.mark.soak
def test_a_hundred_thousand_events_on_three_replicas_are_exact(database: str, tmp_path: Path) -> None:
    mixed_load(database, tmp_path, events=100_000, batch=160, seconds=120, LATECOMER_COMPILE="bulk")


@pytest.mark.soak
def test_a_hundred_thousand_small_requests_on_three_replicas_are_exact(database: str, tmp_path: Path) -> None:
    mixed_load(database, tmp_path, events=100_000, batch=3, seconds=3600, LATECOMER_COMPILE="bulk")


@pytest.mark.soak
def test_a_million_events_on_three_replicas_are_exact(database: str, tmp_path: Path) -> None:
    mixed_load(database, tmp_path, events=1_000_000, batch=50, seconds=7200, LATECOMER_COMPILE="bulk")


def test_replicas_with_small_snapshots_end_with_the_same_bits(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    """Snapshots and compaction are taken by whichever replica comes first, while the others decide."""
    with run_replicas(database, tmp_path, 2, LATECOMER_SNAPSHOT_EVERY="60") as replicas:
        create_bandit(replicas[0].url)
        load = Load({replica.name: replica.url for replica in replicas}, clients=8)
        load.start(events=300)
        load.join(60)
        check_history(load.history, read_log(database, BANDIT))
        stats = agree(replicas, BANDIT)
        replicas[0].kill()
        replicas[0].start()  # from a snapshot and the rows since
        assert agree(replicas, BANDIT) == stats
        stop_all(replicas)
    check_bits(database, BANDIT, stats, tmp_path)
