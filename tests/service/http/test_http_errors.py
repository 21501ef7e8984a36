"""Error answers: one shape, the place, the field, and no more words than anybody reads."""

from collections.abc import Iterator

import pytest
from servers import Server, error_of, run_server

DECISIONS, CONVERSIONS = "/v1/bandits/b/decisions", "/v1/bandits/b/conversions"
WIDE = "/v1/bandits/wide/decisions"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("errors") / "a.db") as server:
        assert server.http.put("/v1/bandits/b", json={"dim": 2, "window": 100}).status_code == 201
        assert server.http.put("/v1/bandits/wide", json={"dim": 5, "window": 100}).status_code == 201
        yield server


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1", 404),
        ("GET", "/v2/bandits", 404),
        ("GET", "/v1/bandits/none", 404),
        ("GET", "/v1/bandits/none/stats", 404),
        ("POST", "/v1/bandits/none/decisions", 404),
        ("POST", "/v1/bandits/none/conversions", 404),
        ("POST", "/v1/bandits/none/revocations", 404),
        ("DELETE", "/v1/bandits/none?confirm=none", 404),
        ("POST", "/v1/bandits", 405),
        ("PATCH", "/v1/bandits/b", 405),
        ("GET", DECISIONS, 405),
        ("DELETE", "/healthz", 405),
    ],
)
def test_404_and_405_have_the_error_shape(server: Server, method: str, path: str, status: int) -> None:
    answer = server.http.request(method, path, content=b"{}" if method == "POST" else None)
    assert answer.status_code == status
    assert error_of(answer)["code"] == {404: "not_found", 405: "method_not_allowed"}[status]
    if status == 405:
        assert error_of(answer)["message"] == f"this address takes {answer.headers['allow']}; got {method}"


def test_a_malformed_body_names_its_place(server: Server) -> None:
    answer = server.http.post(DECISIONS, content='{"actions": [[0.6, 0], [0, "x"]]}', headers=JSON)
    assert error_of(answer)["field"] == "actions[1][1]"
    answer = server.http.post(CONVERSIONS, json=[{"decision_id": "x"}, {"value": 1}])
    assert error_of(answer)["field"] == "[1].decision_id"
    answer = server.http.post(CONVERSIONS, json=[{"decision_id": "x"}, {"decision_id": "x", "unknown": 1}])
    assert error_of(answer)["field"] == "[1].unknown"
    assert error_of(answer)["message"] == "there is no field `unknown`"
    answer = server.http.put("/v1/bandits/new", json={"dim": 2, "windw": "7d"})
    assert error_of(answer)["message"] == "there is no field `windw`; did you mean 'window'?"
    answer = server.http.put("/v1/bandits/new", json={"dim": 2})
    assert error_of(answer)["message"] == 'the field `window` is missing: give it, such as "window": "7d"'
    answer = server.http.post(CONVERSIONS, json=[{"decison_id": "x"}])
    assert error_of(answer)["field"] == "[0].decison_id"
    assert error_of(answer)["message"].endswith("; did you mean 'decision_id'?")
    for cut in (b"", b'{"actions": [[0.6', b'{"actions": [[0.6, 0]], "request_id": "\\ud800"}'):
        answer = server.http.post(DECISIONS, content=cut, headers=JSON)
        assert error_of(answer)["message"].startswith("the body must be whole JSON: it ends early, or a \\u escape")


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PUT", "/v1/bandits/new", {"dim": 2, "window": "40000d"}, "window"),
        ("PUT", "/v1/bandits/new", {"dim": 0, "window": 7}, "dim"),
        ("PUT", "/v1/bandits/new", {"dim": 2, "window": 7, "policy": "none"}, "policy"),
        ("PUT", "/v1/bandits/new", {"dim": 2, "window": 7, "parameters": {"ridge": -1}}, "parameters"),
        ("PUT", "/v1/bandits/new", {"dim": 2, "window": 7, "parameters": {"rigde": 1}}, "parameters"),
        ("POST", DECISIONS, {"actions": [[3, 4]]}, "actions"),
        ("POST", CONVERSIONS, {"decision_id": "x", "value": 1.5}, "value"),
        ("POST", CONVERSIONS, [{"decision_id": "x"}, {"decision_id": "x", "value": 1.5}], "[1].value"),
        ("POST", WIDE, {"actions": [{"id": "a", "features": {"x": 1e308}}]}, "actions[0]"),
        ("POST", WIDE, {"actions": [{"id": "a", "features": {}}], "context": {"x": 1e308}}, "context"),
        ("POST", DECISIONS, {"actions": [{"id": "a", "features": {}}]}, "actions"),
        ("PUT", "/v1/bandits/new", {"dim": 5, "window": 7, "features": {"x": {"scale": 0}}}, "features[...].scale"),
        ("PUT", "/v1/bandits/new", {"dim": 2, "window": 7, "features": {"x": {"scale": 1}}}, "dim"),
    ],
)
def test_a_broken_rule_names_its_field(server: Server, method: str, path: str, body: object, field: str) -> None:
    assert error_of(server.http.request(method, path, json=body))["field"] == field


def test_an_unknown_policy_suggests_the_nearest(server: Server) -> None:
    answer = server.http.put("/v1/bandits/new", json={"dim": 2, "window": 7, "policy": "linucb"})
    assert error_of(answer)["message"].endswith("got 'linucb'; did you mean 'LinUCB'?")


def test_the_error_for_a_long_name_is_short(server: Server) -> None:
    answer = server.http.get(f"/v1/bandits/{'x' * 10_000}")
    assert answer.status_code == 404
    assert len(error_of(answer)["message"]) < 200


@pytest.mark.parametrize(
    "body",
    [
        {"dim": 2, "window": "9" * 1_000_000},
        {"dim": 2, "window": 1, "policy": "x" * 1_000_000},
        {"dim": 2, "window": 1, "parameters": {"x" * 1_000_000: 1}},
        {"dim": 2, "window": 1, "x" * 1_000_000: 1},
    ],
    ids=["window", "policy", "parameter", "unknown field"],
)
def test_the_error_for_a_long_value_is_short(server: Server, body: dict[str, object]) -> None:
    answer = server.http.put("/v1/bandits/new", json=body)
    assert answer.status_code == 400
    assert len(error_of(answer)["message"]) < 1010
