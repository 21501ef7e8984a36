"""The log of creations, deletions and refusals: by the id of the key, and never the key."""

import time
from pathlib import Path
from typing import Any

from servers import Server, run_server

from latecomer.service.http.keys import FRESH, KeyFile

SPEC = {"dim": 2, "window": 100}
MORE = "request refused, and more that are not shown"


def ask(server: Server, key: str | None, method: str, path: str, body: object = None) -> int:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return server.http.request(method, path, json=body, headers=headers).status_code


def said(server: Server, event: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name != "timestamp"} for line in server.logged(event)]


def test_changes_and_refusals_are_logged_with_the_key_id(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server:
        assert ask(server, None, "PUT", "/v1/bandits/free", SPEC) == 201
        file = KeyFile(Path(f"{server.store}.keys"))
        admin, admin_key = file.add(scopes=["admin"])
        other, other_key = file.add(scopes=["read"])
        time.sleep(2 * FRESH)
        wrong = f"lc_{other_key.id}_{'0' * 64}"
        assert ask(server, admin, "PUT", "/v1/bandits/b", SPEC) == 201
        assert ask(server, other, "DELETE", "/v1/bandits/b?confirm=b") == 403
        assert ask(server, wrong, "POST", "/v1/bandits/b/decisions", {}) == 401
        assert ask(server, None, "GET", "/v1/bandits") == 401
        assert ask(server, "a secret of something else", "GET", "/metrics") == 401
        assert ask(server, admin, "DELETE", "/v1/bandits/b?confirm=b") == 200
    created = {"event": "bandit created", "level": "info", "dim": 2, "policy": "recommended"}
    assert said(server, "bandit created") == [
        created | {"bandit": "free", "key": None},
        created | {"bandit": "b", "key": admin_key.id},
    ]
    assert said(server, "bandit deleted") == [
        {"event": "bandit deleted", "level": "info", "bandit": "b", "key": admin_key.id}
    ]
    refused = [
        ("DELETE", "/v1/bandits/{name}", 403, other_key.id),
        ("POST", "/v1/bandits/{name}/decisions", 401, other_key.id),
        ("GET", "/v1/bandits", 401, None),
        ("GET", "/metrics", 401, None),
    ]
    lines = said(server, "request refused")
    assert [(line["method"], line["route"], line["status"], line["key"]) for line in lines] == refused
    assert {line["address"] for line in lines} == {"127.0.0.1"}
    assert {line["level"] for line in lines} == {"warning"}
    for secret in (admin, other, wrong, "a secret of something else"):
        assert secret.rpartition("_")[2] not in server.output


def test_a_flood_of_refusals_does_not_fill_the_log(tmp_path: Path) -> None:
    KeyFile(tmp_path / "a.db.keys").add(scopes=["read"])
    with run_server(tmp_path / "a.db") as server:
        for _ in range(200):
            assert ask(server, "x", "GET", "/v1/bandits") == 401
    assert 0 < len(said(server, "request refused")) <= 20
    assert len(said(server, "request refused")) + sum(line["left_out"] for line in said(server, MORE)) == 200
