"""Keys and scopes: missing, wrong, revoked, other-scope and other-bandit keys, and what a log must not say."""

import stat
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from commands import run_command
from servers import Server, error_of, run_server
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.errors import DamagedFileError, InputError
from latecomer.service.http.keys import FRESH, SCOPES, KeyFile

ROWS = {"actions": [[0.6, 0.0], [0.0, 0.8]]}
SPEC = {"dim": 2, "window": 100}


def command(*arguments: str) -> str:
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output
    return ended.stdout.strip()


class Keys:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.file = KeyFile(Path(f"{server.store}.keys"))

    def make(self, *scopes: str, bandits: tuple[str, ...] = ("*",)) -> str:
        made = self.file.add(scopes=scopes, bandits=bandits)[0]
        time.sleep(2 * FRESH)
        return made

    def request(self, key: str | None, method: str, path: str, body: object = None) -> httpx.Response:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return self.server.http.request(method, path, json=body, headers=headers)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    with run_server(tmp_path_factory.mktemp("keys") / "a.db", "--log-level", "debug") as server:
        keys = Keys(server)
        admin = keys.make(*SCOPES)
        for name in ("b", "other"):
            assert keys.request(admin, "PUT", f"/v1/bandits/{name}", SPEC).status_code == 201
        yield keys


EVERYTHING = [
    ("admin", "PUT", "/v1/bandits/b", SPEC),
    ("read", "GET", "/v1/bandits/b", None),
    ("read", "GET", "/v1/bandits/b/stats", None),
    ("read", "GET", "/v1/bandits", None),
    ("read", "GET", "/metrics", None),
    ("decide", "POST", "/v1/bandits/b/decisions", ROWS),
    ("convert", "POST", "/v1/bandits/b/conversions", {"decision_id": "x"}),
    ("convert", "POST", "/v1/bandits/b/revocations", {"decision_id": "x"}),
    ("admin", "DELETE", "/v1/bandits/b?confirm=wrong", None),
]


@pytest.mark.parametrize(("scope", "method", "path", "body"), EVERYTHING)
def test_a_key_with_the_scope_is_accepted(keys: Keys, scope: str, method: str, path: str, body: object) -> None:
    assert keys.request(keys.make(scope), method, path, body).status_code < 401
    other = keys.request(keys.make(*(s for s in SCOPES if s != scope)), method, path, body)
    assert (other.status_code, error_of(other)["code"]) == (403, "forbidden")


@pytest.mark.parametrize(("scope", "method", "path", "body"), EVERYTHING)
def test_a_request_without_a_valid_key_is_refused(keys: Keys, scope: str, method: str, path: str, body: object) -> None:
    good = keys.make(scope)
    swapped = good[:-1] + ("0" if good[-1] != "0" else "1")
    for key in (None, "x", "lc_", "lc__", "lc_000000000000_" + "0" * 64, swapped, good.upper(), good + "0"):
        answer = keys.request(key, method, path, body)
        assert (answer.status_code, error_of(answer)["code"]) == (401, "unauthorized"), key
        assert answer.headers["www-authenticate"] == "Bearer"
    basic = keys.server.http.request(method, path, json=body, headers={"Authorization": f"Basic {good}"})
    assert basic.status_code == 401


def test_a_key_for_one_bandit_shows_no_other(keys: Keys) -> None:
    key = keys.make(*SCOPES, bandits=("b",))
    assert keys.request(key, "POST", "/v1/bandits/b/decisions", ROWS).status_code == 201
    assert [info["name"] for info in keys.request(key, "GET", "/v1/bandits").json()["bandits"]] == ["b"]
    for path in ("/v1/bandits/other", "/v1/bandits/none"):  # there or not: the answer is the same
        for method, rest, body in (("GET", "", None), ("GET", "/stats", None), ("POST", "/decisions", ROWS)):
            answer = keys.request(key, method, path + rest, body)
            assert answer.status_code == 403
            assert (
                error_of(answer)["message"]
                == error_of(keys.request(key, method, "/v1/bandits/x" + rest, body))["message"]
            )
    assert keys.request(key, "PUT", "/v1/bandits/new", SPEC).status_code == 403
    assert keys.request(key, "GET", "/metrics").status_code == 403  # it speaks of every bandit


def test_a_revoked_key_is_refused_within_a_hundredth_of_a_second(keys: Keys) -> None:
    store = str(keys.server.store)
    presented = command("keys", "add", "--scope", "decide", "--bandit", "b", "--note", "a shop", "--store", store)
    time.sleep(FRESH)  # the server may have looked at the file just before
    assert keys.request(presented, "POST", "/v1/bandits/b/decisions", ROWS).status_code == 201
    id_ = presented.split("_")[1]
    listed = command("keys", "list", "--store", store)
    assert f"{id_}  " in listed
    assert "a shop" in listed
    assert presented.split("_")[2] not in listed
    assert command("keys", "revoke", id_, "--store", store) == f"revoked {id_}"
    time.sleep(FRESH)  # the server may have looked at the file just before
    assert keys.request(presented, "POST", "/v1/bandits/b/decisions", ROWS).status_code == 401


def test_head_needs_the_key_of_get(keys: Keys) -> None:
    for path in ("/v1/bandits", "/v1/bandits/b", "/v1/bandits/b/stats", "/metrics"):
        for key in (None, "x", keys.make("read"), keys.make("decide")):
            assert keys.request(key, "HEAD", path).status_code == keys.request(key, "GET", path).status_code, path


def test_probes_and_schema_need_no_key(keys: Keys) -> None:
    for path in ("/healthz", "/readyz", "/schema"):
        assert keys.request(None, "GET", path).status_code == 200


def test_no_key_is_stored_or_logged(keys: Keys) -> None:
    key = keys.make("decide")
    secret = key.split("_")[2]
    keys.request(key, "POST", "/v1/bandits/b/decisions", ROWS)
    keys.request(key, "GET", f"/v1/bandits/b?key={key}")
    keys.request(key, "POST", f"/v1/bandits/b/decisions?key={key}", {"actions": key})
    assert secret not in keys.file.path.read_text()
    assert stat.S_IMODE(keys.file.path.stat().st_mode) == 0o600
    assert secret not in keys.server.output
    assert "lc_" not in keys.server.output


def test_after_the_last_key_is_revoked_every_request_is_refused(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server:
        assert server.http.get("/v1/bandits").status_code == 200  # no keys, this machine alone
        file = KeyFile(Path(f"{server.store}.keys"))
        _, key = file.add(scopes=["read"])
        time.sleep(2 * FRESH)
        assert server.http.get("/v1/bandits").status_code == 401
        file.revoke(key.id)
        time.sleep(2 * FRESH)
        assert server.http.get("/v1/bandits").status_code == 401
        file.path.write_text("not keys")
        time.sleep(2 * FRESH)
        answer = server.http.get("/v1/bandits")
        assert (answer.status_code, error_of(answer)["code"]) == (503, "unavailable")


def test_without_keys_the_host_header_must_be_local(tmp_path: Path) -> None:
    """A page whose name was made to lead to this machine is not this machine."""
    with run_server(tmp_path / "a.db") as server:
        for host in ("localhost", "127.0.0.1", "127.0.0.1:80", "[::1]:8080", "LOCALHOST:1"):
            assert server.http.get("/v1/bandits", headers={"Host": host}).status_code == 200
        for host in (
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8080",
            "10.0.0.1",
            "x@localhost",
        ):
            answer = server.http.get("/v1/bandits", headers={"Host": host})
            assert (answer.status_code, error_of(answer)["code"]) == (403, "forbidden"), host
            assert server.http.put("/v1/bandits/b", json=SPEC, headers={"Host": host}).status_code == 403
        key, _ = KeyFile(Path(f"{server.store}.keys")).add(scopes=["read"])
        time.sleep(2 * FRESH)
        named = {"Host": "decisions.example", "Authorization": f"Bearer {key}"}
        assert server.http.get("/v1/bandits", headers=named).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - that is the point
def test_a_public_address_needs_keys(tmp_path: Path, host: str) -> None:
    ended = run_command("serve", "--store", "a.db", "--host", host, "--port", "0", folder=tmp_path)
    assert ended.process.returncode == 2
    assert "latecomer keys add" in ended.stderr
    assert not (tmp_path / "a.db").exists()


def test_a_public_address_is_served_with_keys(tmp_path: Path) -> None:
    presented, _ = KeyFile(tmp_path / "a.db.keys").add(scopes=["read"])
    with run_server(tmp_path / "a.db", "--host", "0.0.0.0") as server:  # noqa: S104
        assert server.http.get("/v1/bandits").status_code == 401
        assert server.http.get("/v1/bandits", headers={"Authorization": f"Bearer {presented}"}).status_code == 200
        (tmp_path / "a.db.keys").unlink()
        time.sleep(2 * FRESH)
        assert server.http.get("/v1/bandits").status_code == 503


def test_mistakes_with_keys_are_named(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys")
    with pytest.raises(InputError, match="must be one of decide, convert, read, admin; got 'root'"):
        file.add(scopes=["root"])
    with pytest.raises(InputError, match="must have a scope"):
        file.add(scopes=[])
    with pytest.raises(InputError, match="no key has the id 'x'"):
        file.revoke("x")
    assert not file.path.exists()
    file.path.write_text('[{"id": 1}]')
    with pytest.raises(DamagedFileError, match="is not a file of keys"):
        file.keys()
