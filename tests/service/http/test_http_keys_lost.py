"""A file of keys that is missing opens nothing: neither under a running server nor at its next start."""

import asyncio
import time
from pathlib import Path

import apsw
import pytest
from commands import run_command
from plain_client import PlainClient
from servers import run_server, wait_until

import latecomer as lc
from latecomer.errors import InputError
from latecomer.service.http.keys import FRESH, SCOPES, KeyFile
from latecomer.service.http.logging_setup import start_log
from latecomer.service.http.server import serve
from latecomer.service.http.settings import Settings
from latecomer.service.storage.private_files import is_open_to_others

GONE, BACK = "keys cannot be checked: every request is refused", "keys can be checked again"

OPEN = "a file can be read by others than its owner: chmod 600"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def file(store: Path) -> KeyFile:
    return KeyFile(Path(f"{store}.keys"))


def test_a_removed_key_file_refuses_every_request(store: Path, file: KeyFile) -> None:
    delete = ("DELETE", "/v1/bandits/b?confirm=b")
    with run_server(store) as server:
        client = PlainClient(server.port)
        assert client.create("b") == 201  # no keys yet, and this machine alone
        key, _ = file.add(scopes=SCOPES)
        time.sleep(1.0)  # nobody asks meanwhile
        kept = file.path.rename(file.path.with_name("kept"))
        assert wait_until(lambda: len(server.logged(GONE)) == 1)
        for shown in (None, key, "lc_1_2"):
            for _ in range(3):
                assert client.request(*delete, key=shown)[0] == 503
        assert client.request("GET", "/healthz")[0] == 200
        assert client.request("GET", "/readyz")[0] == 503
        assert len(server.logged(GONE)) == 1  # once, not for each request
        assert str(file.path) in server.logged(GONE)[0]["why"]
        kept.rename(file.path)
        time.sleep(2 * FRESH)
        assert client.request("GET", "/v1/bandits/b", key=key)[0] == 200
        assert client.request("GET", "/readyz")[0] == 200
        assert wait_until(lambda: len(server.logged(BACK)) == 1)
        file.path.write_text("not keys")
        time.sleep(2 * FRESH)
        assert client.request("GET", "/v1/bandits/b", key=key)[0] == 503
        assert wait_until(lambda: len(server.logged(GONE)) == 2)
        file.path.unlink()
    with run_server(store) as server:  # the store remembers
        client = PlainClient(server.port)
        assert client.request(*delete)[0] == 503
        assert client.request(*delete, key=key)[0] == 503
        assert wait_until(lambda: len(server.logged(GONE)) == 1)
        key, _ = file.add(scopes=SCOPES)
        time.sleep(2 * FRESH)
        assert client.request("GET", "/v1/bandits/b", key=key)[0] == 200
        assert client.request(*delete)[0] == 401


def test_files_readable_by_others_are_logged(store: Path, file: KeyFile) -> None:
    file.add(scopes=SCOPES)
    lc.open(store, dim=2, window="7d").close()
    assert not is_open_to_others(store)
    assert not is_open_to_others(file.path)
    store.chmod(0o644)
    file.path.chmod(0o640)
    with run_server(store) as server:
        assert [said["path"] for said in server.logged(OPEN)] == [str(store), str(file.path)]
    assert store.stat().st_mode & 0o777 == 0o644


def test_no_require_keys_is_logged_once(store: Path, file: KeyFile) -> None:
    file.add(scopes=SCOPES)
    with run_server(store, "--no-require-keys") as server:  # there are keys: they are needed
        assert PlainClient(server.port).create("b") == 401
        file.path.unlink()
        time.sleep(2 * FRESH)
        assert PlainClient(server.port).create("b") == 503
    with run_server(store, LATECOMER_REQUIRE_KEYS="false") as server:
        assert PlainClient(server.port).create("b") == 201
    with run_server(store) as server:
        assert PlainClient(server.port).request("GET", "/v1/bandits/b")[0] == 200


def test_a_server_that_requires_keys_does_not_run_without(store: Path, file: KeyFile) -> None:
    refused = run_command("serve", "--store", str(store), "--port", "0", "--require-keys", folder=store.parent)
    assert refused.process.returncode == 2
    assert "require_keys" in refused.stderr
    assert "latecomer keys add" in refused.stderr
    _, key = file.add(scopes=SCOPES)
    file.revoke(key.id)
    with pytest.raises(InputError, match=r"require_keys must be false as long as there are no keys; got True"):
        asyncio.run(serve(Settings(store=str(store), port=0, require_keys=True), start_log("error")))
    assert not store.exists()


def test_keys_are_remembered_once_the_store_can_be_written(store: Path, file: KeyFile) -> None:
    with run_server(store) as server:
        assert PlainClient(server.port).create("b") == 201
        other = apsw.Connection(str(store))
        other.execute("BEGIN IMMEDIATE")  # longer than the writer waits for it
        file.add(scopes=SCOPES)
        time.sleep(6.5)
        other.execute("ROLLBACK")
        other.close()
        assert wait_until(lambda: _remembers(store))
    file.path.unlink()
    with run_server(store) as server:
        assert PlainClient(server.port).request("DELETE", "/v1/bandits/b?confirm=b")[0] == 503


def _remembers(store: Path) -> bool:
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return bool(list(connection.execute("SELECT 1 FROM setting WHERE name = 'keys'")))
    finally:
        connection.close()
