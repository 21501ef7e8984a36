"""Commands of docs/how-to/replicas.md for operators: roles and grants, TLS by the address, a dump and its restore."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from history import read_log
from postgres_server import PostgresServer
from replica_load import BANDIT, PACE, QUICK, SETS, create_bandit, run_load
from replicas import Replica, init_store, run_cli, run_replicas, wait_for
from tls_proxy import TlsProxy, run_tls_proxy
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.errors import FileError, NewerFileError
from latecomer.service.storage.postgres.schema import upgrade

PAGE = (Path(__file__).parents[4] / "docs/how-to/replicas.md").read_text(encoding="utf-8")
ROWS = [[0.6, 0.0], [0.0, 0.8]]


# ---- roles ----


def read_grants() -> tuple[list[str], list[str]]:
    """Return the statements of the page: the administrator's, and the owner's after `latecomer store init`."""
    blocks = re.findall(r"<<'SQL'\n(.*?)\nSQL\n", PAGE, re.DOTALL)
    assert len(blocks) == 2, "the page has other statements"
    first, second = ([line for line in block.splitlines() if not line.startswith("\\password")] for block in blocks)
    return first, second


@pytest.fixture(scope="module")
def roles(_cluster: Any) -> Iterator[tuple[str, str]]:
    """Return the addresses of the owner and of the replicas' role, as the page makes them."""
    cluster, name = _cluster, "shop_with_roles"
    cluster.ensure_running()
    cluster.create_database(name)
    first, second = read_grants()
    try:
        for statement in first:
            cluster.execute(statement.replace("DATABASE latecomer", f"DATABASE {name}"))
        owner, user = (
            cluster.url_of(name).replace("postgres@", f"{role}@") for role in ("latecomer_owner", "latecomer")
        )
        init_store(owner)
        with psycopg.connect(owner) as connection:
            for statement in second:
                connection.execute(statement.encode())
        yield owner, user
    finally:
        cluster.ensure_running()
        cluster.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        for role in ("latecomer_owner", "latecomer"):
            with suppress(psycopg.errors.UndefinedObject):
                cluster.execute(f"DROP ROLE {role}")


FORBIDDEN = [
    "CREATE TABLE latecomer.mine (number int)",
    "DROP TABLE latecomer.log",
    "TRUNCATE latecomer.log",
    "ALTER TABLE latecomer.log ADD COLUMN mine int",
    "UPDATE latecomer.version SET number = 2",
    "CREATE SCHEMA mine",
    "CREATE ROLE mine",
    "COPY latecomer.log TO PROGRAM 'true'",
]


def test_a_replica_does_all_its_work_with_the_grants_of_the_page(roles: tuple[str, str], tmp_path: Path) -> None:
    owner, user = roles
    with run_replicas(user, tmp_path, 1, LATECOMER_SNAPSHOT_EVERY="20", LATECOMER_RETENTION="1s") as (replica,):
        for name in ("offers", "old"):
            spec = {"dim": 2, "window": 10, "policy": QUICK}
            assert replica.http.put(f"/v1/bandits/{name}", json=spec).status_code == 201
        for number in range(40):
            body = {"actions": ROWS, "request_id": f"r{number}"}
            answer = replica.http.post("/v1/bandits/offers/decisions", json=body)
            assert answer.status_code == 201, answer.text
            report = {"decision_id": answer.json()["decision_id"]}
            assert replica.http.post("/v1/bandits/offers/conversions", json=report).status_code == 200
        assert replica.http.delete("/v1/bandits/old", params={"confirm": "old"}).status_code == 200
        run_cli("keys", "add", "--scope", "read", "--store", user)
        assert replica.stop() == 0, replica.log
        assert "failed" not in replica.log
    with psycopg.connect(user) as connection:
        assert connection.execute("SELECT count(*) FROM latecomer.snapshot").fetchall() != [(0,)]
    run_cli("log", "replay", user, "--bandit", "offers", "--into", "again", "--partial")
    for store in (user, owner):
        assert run_cli("log", "verify", store).splitlines()[-1] == "whole"
    refused = CliRunner().invoke(app, ["store", "init", user.replace("shop_with_roles", "postgres")])
    assert refused.exit_code == 1, refused.output
    assert "may create a schema" in " ".join(refused.output.split())


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_role_of_the_replicas_may_do_nothing_else(roles: tuple[str, str], statement: str) -> None:
    with psycopg.connect(roles[1]) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement.encode())


def test_the_role_of_the_replicas_may_not_upgrade(roles: tuple[str, str]) -> None:
    owner, user = roles
    with pytest.raises(FileError, match="use the role that owns them"):
        upgrade(user, version=2, upgrades=UPGRADES)
    assert upgrade(owner, version=2, upgrades=UPGRADES) == (1, 2)
    with psycopg.connect(owner) as connection:  # as the other tests of the roles know it
        connection.execute("DROP TABLE latecomer.note; UPDATE latecomer.version SET number = 1")


# ---- versions ----

UPGRADES = {
    1: "CREATE TABLE note (text text NOT NULL); INSERT INTO note VALUES ('a')",
    2: "INSERT INTO note VALUES ('b')",
}


def read_notes(database: str) -> list[tuple[str, ...]]:
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT text FROM latecomer.note ORDER BY text").fetchall()


def test_an_upgrade_takes_every_step_once(database: str) -> None:
    with ThreadPoolExecutor(4) as pool:  # at the same time
        done = list(pool.map(lambda _: upgrade(database, version=3, upgrades=UPGRADES), range(4)))
    assert sorted(done) == [(1, 3), (3, 3), (3, 3), (3, 3)]
    assert read_notes(database) == [("a",), ("b",)]
    with pytest.raises(NewerFileError, match="has version 3, and this Latecomer reads up to 1"):
        lc.open(database, name="offers", dim=2, window=10)


def test_an_upgrade_that_fails_changes_nothing(database: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable):
        upgrade(database, version=3, upgrades={**UPGRADES, 2: "INSERT INTO nowhere VALUES (1)"})
    with lc.open(database, name="offers", dim=2, window=10) as bandit:
        assert bandit.decide(ROWS).round == 1
    with pytest.raises(psycopg.errors.UndefinedTable):
        read_notes(database)


# ---- TLS ----


def make_certificates(folder: Path) -> None:
    """Make two authorities, and a certificate of the first for this machine's address."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("making certificates needs openssl")
    new = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    for name in ("authority", "stranger"):
        files = ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem"]
        subprocess.run([*new, "-subj", f"/CN={name}", *files], check=True, capture_output=True)  # noqa: S603
    signed = ["-CA", f"{folder}/authority.pem", "-CAkey", f"{folder}/authority.key"]
    files = ["-keyout", f"{folder}/server.key", "-out", f"{folder}/server.pem"]
    named = ["-subj", "/CN=db", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*new, *named, *signed, *files], check=True, capture_output=True)  # noqa: S603


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture
def encrypted(cluster: PostgresServer, certificates: Path) -> Iterator[TlsProxy]:
    """Return the way to the cluster for those who speak TLS."""
    key = certificates / "server.key"
    with run_tls_proxy(cluster.port, certificate=certificates / "server.pem", key=key) as proxy:
        yield proxy


def address_through(proxy: TlsProxy, database: str, host: str = "127.0.0.1", **options: object) -> str:
    name = database.rpartition("/")[2]
    query = urlencode({name: str(value) for name, value in options.items()})
    return f"postgresql://postgres@{host}:{proxy.port}/{name}?{query}"


def test_verify_full_accepts_the_right_authority(
    encrypted: TlsProxy, database: str, certificates: Path, tmp_path: Path
) -> None:
    root = certificates / "authority.pem"
    address = address_through(encrypted, database, sslmode="verify-full", sslrootcert=root)
    with run_replicas(address, tmp_path, 1) as (replica,):
        before = encrypted.encrypted
        with lc.open(address, name="offers", dim=2, window=10) as bandit:
            assert bandit.decide(ROWS).round == 1
            assert replica.http.post("/v1/bandits/offers/decisions", json={"actions": ROWS}).json()["round"] == 2
        assert encrypted.encrypted > before > 0
        assert replica.stop() == 0
    assert run_cli("log", "verify", address).splitlines()[-1] == "whole"


WRONG = {
    "another authority": ("stranger.pem", "127.0.0.1", "verify-full", "certificate verify failed"),
    "another host": ("authority.pem", "localhost", "verify-full", "does not match host name"),
    "no encryption": ("authority.pem", "127.0.0.1", "disable", "server closed the connection"),
}


@pytest.mark.parametrize("case", WRONG)
def test_verify_full_refuses(encrypted: TlsProxy, database: str, certificates: Path, tmp_path: Path, case: str) -> None:
    root, host, mode, reason = WRONG[case]
    address = address_through(encrypted, database, host, sslmode=mode, sslrootcert=certificates / root)
    with pytest.raises(FileError, match=reason):
        lc.open(address, name="offers", dim=2, window=10)
    assert CliRunner().invoke(app, ["log", "verify", address]).exit_code == 1
    replica = Replica(address, tmp_path)
    try:
        replica.start(wait=False)
        assert wait_for(lambda: replica.status("/readyz") == 503, 20)
        assert wait_for(lambda: reason in replica.log, 5), replica.log
    finally:
        replica.close()


# ---- backup ----


def test_a_dump_under_load_is_whole_after_its_restore(cluster: PostgresServer, database: str, tmp_path: Path) -> None:
    with run_replicas(database, tmp_path, 2, LATECOMER_SNAPSHOT_EVERY="100") as replicas:
        create_bandit(replicas[0].url, policy=QUICK)
        with run_load({replica.name: replica.url for replica in replicas}, clients=4, pace=PACE) as load:
            client = load.add_client(*(replica.name for replica in replicas))
            before = [client.decide() for _ in range(20)]
            dump = cluster.run_client("pg_dump", "--format", "custom", database.rpartition("/")[2])
            after = client.decide()
    restored = cluster.create_database()
    into = ("--dbname", restored.rpartition("/")[2], "--exit-on-error")
    cluster.run_client("pg_restore", *into, input_=dump)
    assert run_cli("log", "verify", restored).splitlines()[-1] == "whole"
    kept = {decision.decision_id for decision in read_log(restored, BANDIT).decisions}
    assert {answer.decision_id for answer in before} <= kept
    with lc.open(restored, name=BANDIT) as bandit:
        assert bandit.convert(before[3]) in (lc.Verdict.ACCEPTED, lc.Verdict.DUPLICATE)
        assert after.decision_id in kept or bandit.convert(after) is lc.Verdict.UNKNOWN
        assert bandit.decide(SETS[0]).round == len(kept) + 1
