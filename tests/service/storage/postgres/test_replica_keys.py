"""Keys live in the database: added, or revoked, on one machine, and known to all replicas within a second."""

from pathlib import Path

from replicas import Replica, run_cli, run_replicas, wait_for
from servers import error_of

KNOWN_TO_ALL = 1.0
SCOPES = ("--scope", "admin", "--scope", "decide", "--scope", "convert", "--scope", "read")


def status(replica: Replica, key: str | None) -> int:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return replica.http.get("/v1/bandits", headers=headers).status_code


def add_key(store: str, *options: str) -> str:
    """Return a new key: the line of the output that is one word."""
    lines = run_cli("keys", "add", *SCOPES, *options, "--store", store).splitlines()
    return next(line for line in lines if line and " " not in line)


def test_a_key_that_is_added_or_revoked_is_known_to_all_within_a_second(database: str, tmp_path: Path) -> None:
    with run_replicas(database, tmp_path) as replicas:
        assert [status(replica, None) for replica in replicas] == [200] * 3  # none is needed yet
        first = add_key(database)
        assert wait_for(lambda: all(status(replica, first) == 200 for replica in replicas), KNOWN_TO_ALL)
        assert wait_for(lambda: all(status(replica, None) == 401 for replica in replicas), KNOWN_TO_ALL)
        second = add_key(database)
        assert wait_for(lambda: all(status(replica, second) == 200 for replica in replicas), KNOWN_TO_ALL)
        ids = [line.split()[0] for line in run_cli("keys", "list", "--store", database).splitlines()]
        assert len(ids) == 2
        by_key = {key: id_ for key in (first, second) for id_ in ids if id_ in key}
        run_cli("keys", "revoke", by_key.get(first, ids[0]), "--store", database)
        assert wait_for(lambda: all(status(replica, first) == 401 for replica in replicas), KNOWN_TO_ALL)
        assert [status(replica, second) for replica in replicas] == [200] * 3
        restarted = replicas[0]
        restarted.kill()
        restarted.start()
        assert (status(restarted, first), status(restarted, second), status(restarted, None)) == (401, 200, 401)
        refused = restarted.http.get("/v1/bandits")
        assert error_of(refused)["code"] == "unauthorized"
        for replica in replicas:
            assert first not in replica.log
            assert second not in replica.log


def test_a_key_of_one_bandit_opens_that_one_alone_on_every_replica(database: str, tmp_path: Path) -> None:
    with run_replicas(database, tmp_path, 2) as replicas:
        for name in ("offers", "news"):
            assert replicas[0].http.put(f"/v1/bandits/{name}", json={"dim": 2, "window": 10}).status_code == 201
        keys = {name: add_key(database, "--bandit", name) for name in ("offers", "news")}

        def statuses(replica: Replica, key: str) -> list[int]:
            headers = {"Authorization": f"Bearer {key}"}
            paths = (f"/v1/bandits/{name}/stats" for name in keys)
            return [replica.http.get(path, headers=headers).status_code for path in paths]

        assert wait_for(
            lambda: all(statuses(replica, keys["news"]) == [403, 200] for replica in replicas), KNOWN_TO_ALL
        )
        for replica in replicas:
            assert statuses(replica, keys["offers"]) == [200, 403]


def test_a_replica_beyond_this_machine_needs_a_key_from_the_database(database: str, tmp_path: Path) -> None:
    key = add_key(database)
    with run_replicas(database, tmp_path, 1, "--host", "0.0.0.0", "--require-keys") as (replica,):  # noqa: S104
        assert (status(replica, key), status(replica, None)) == (200, 401)
