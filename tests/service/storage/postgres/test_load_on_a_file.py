"""The load and the check of its history, on a server with a file: what replicas must be equal to."""

from pathlib import Path

from history import read_log
from history_checker import Rule, check_history, find_violations
from replica_load import BANDIT, Load, create_bandit, run_load
from replicas import agree, run_replicas


def test_a_server_on_a_file_that_is_killed_under_load_passes_the_check(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    with run_replicas(str(store), tmp_path, 1) as replicas:
        (server,) = replicas
        create_bandit(server.url)
        with run_load({server.name: server.url}, clients=4) as load:
            for _ in range(2):
                load.wait_for_more(40)
                server.kill()
                server.start()
        history = load.history
        assert history.errors, "no client noticed a kill"
        stats = agree(replicas, BANDIT)
        assert server.stop() == 0
    log = read_log(store, BANDIT)
    check_history(history, log)
    assert stats["rounds"] == len(log.decisions) > 0
    log.decisions.pop(3)
    assert {violation.rule for violation in find_violations(history, log)} == {Rule.ACKNOWLEDGED_IS_KEPT, Rule.GAPLESS}


def test_a_load_ends_by_itself_when_it_has_sent_enough(tmp_path: Path) -> None:
    store = str(tmp_path / "shop.db")
    with run_replicas(store, tmp_path, 1) as (server,):
        create_bandit(server.url)
        load = Load({server.name: server.url}, clients=4, batch=50)
        load.start(events=1_000)
        load.join(60)
        assert load.acknowledged >= 1_000
        assert server.stop() == 0
    check_history(load.history, read_log(store, BANDIT))
