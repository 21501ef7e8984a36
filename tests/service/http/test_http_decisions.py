"""Decisions and conversions over HTTP: what is answered, and that the same request is the same decision."""

import io
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from servers import Server, error_of, run_server

from latecomer.policies import registry

ROWS = [[0.6, 0.0], [0.0, 0.8]]
DESCRIBED = "/v1/bandits/described/decisions"
SPEC = {"dim": 2, "window": 1000, "parameters": {"seed": 7}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("decisions") / "a.db") as server:
        for name in ("b", "timed"):
            spec = SPEC | ({"window": "7d"} if name == "timed" else {})
            assert server.http.put(f"/v1/bandits/{name}", json=spec).status_code == 201
        scales = {name: {"scale": 20} for name in ("hour", *(f"f{j}" for j in range(20)))}
        spec = {"dim": 5, "window": 1000, "features": scales}
        assert server.http.put("/v1/bandits/described", json=spec).status_code == 201
        yield server


def test_a_decision_and_its_conversion(server: Server) -> None:
    answer = server.http.post("/v1/bandits/b/decisions", json={"actions": ROWS, "ids": ["x", "y"]})
    assert answer.status_code == 201
    decision = answer.json()
    place = {"decision_id", "index", "action_id", "round", "expires_at"}
    assert set(decision) == {*place, "score", "propensity", "is_control"}
    assert decision["action_id"] == "xy"[decision["index"]]
    assert decision["expires_at"] is None  # the window is in rounds
    report = {"decision_id": decision["decision_id"]}
    for verdict in ("accepted", "duplicate"):
        answer = server.http.post("/v1/bandits/b/conversions", json=report)
        assert (answer.status_code, answer.json()) == (200, {"verdicts": [verdict]})
    answer = server.http.post("/v1/bandits/b/revocations", json=[report, report])
    assert answer.json() == {"verdicts": ["accepted", "duplicate"]}
    answer = server.http.post("/v1/bandits/b/conversions", json=[{"decision_id": "none-1"}, report])
    assert answer.json()["verdicts"][0] == "unknown"


def test_a_window_in_time_has_expires_at(server: Server) -> None:
    decision = server.http.post("/v1/bandits/timed/decisions", json={"actions": ROWS}).json()
    closes = datetime.fromisoformat(decision["expires_at"])
    assert 6.9 < (closes - datetime.now(closes.tzinfo)).total_seconds() / 86400 < 7.1


def test_an_npy_body_decides_as_its_rows_do(server: Server) -> None:
    file = io.BytesIO()
    np.save(file, np.array(ROWS))
    headers = {"Content-Type": "application/x-npy"}
    path = "/v1/bandits/b/decisions?request_id=binary"
    first, again = (server.http.post(path, content=file.getvalue(), headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    same = server.http.post("/v1/bandits/b/decisions", json={"actions": ROWS, "request_id": "binary"})
    assert same.json() == first.json()


def test_features_decide_as_their_hashed_rows_do(server: Server) -> None:
    actions = [{"id": f"offer-{i}", "features": {"price": i / 10, "kind": "book", "new": True}} for i in range(5)]
    answer = server.http.post(DESCRIBED, json={"context": {"country": "NO", "hour": 7}, "actions": actions})
    assert answer.status_code == 201
    assert answer.json()["action_id"] == f"offer-{answer.json()['index']}"


def test_many_features_decide_as_few_do(server: Server) -> None:
    """Features hashed in another thread get the numbers of those hashed on the loop."""
    actions = [{"id": f"offer-{i}", "features": {f"f{j}": i / 100 + j for j in range(20)}} for i in range(100)]
    small = {"actions": actions[:1], "request_id": "few"}
    padded = {"request_id": "few", "actions": actions[:1], "context": {}}
    assert server.http.post(DESCRIBED, json={"actions": actions, "context": {"a": 1}}).status_code == 201
    first = server.http.post(DESCRIBED, json=small)
    spaced = json.dumps(padded) + " " * 4096
    again = server.http.post(DESCRIBED, content=spaced, headers={"Content-Type": "application/json"})
    assert (again.status_code, again.json()) == (201, first.json())


def test_a_request_id_gives_the_same_decision_after_a_restart(tmp_path: Path) -> None:
    body = {"actions": ROWS, "ids": ["x", "y"], "request_id": "order 1"}
    path = "/v1/bandits/b/decisions"
    with run_server(tmp_path / "a.db") as server:
        server.http.put("/v1/bandits/b", json=SPEC)
        first = server.http.post(path, json=body)
        assert server.http.post(path, json=body).content == first.content
    with run_server(tmp_path / "a.db") as server:
        assert server.http.post(path, json=body).content == first.content
        other = server.http.post(path, json=body | {"actions": ROWS[::-1]})
        assert (other.status_code, error_of(other)["code"]) == (409, "conflict")
        assert server.http.get("/v1/bandits/b/stats").json()["rounds"] == 1


def test_a_bandit_is_created_shown_and_deleted(server: Server) -> None:
    path = "/v1/bandits/short-lived"
    first, again = (server.http.put(path, json=SPEC) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == server.http.get(path).json()
    assert error_of(server.http.put(path, json=SPEC | {"window": 5}))["code"] == "conflict"
    assert "short-lived" in [info["name"] for info in server.http.get("/v1/bandits").json()["bandits"]]
    decision = server.http.post(f"{path}/decisions", json={"actions": ROWS}).json()
    for query in ("", "?confirm=yes", "?confirm=short-lived&confirm=b"):
        assert error_of(server.http.delete(path + query))["field"] == "confirm"
    assert server.http.delete(f"{path}?confirm=short-lived").status_code == 200
    for answer in (server.http.get(path), server.http.post(f"{path}/decisions", json={"actions": ROWS})):
        assert (answer.status_code, error_of(answer)["code"]) == (404, "not_found")
    assert server.http.put(path, json=SPEC).status_code == 201  # a new one, to which the old ids mean nothing
    answer = server.http.post(f"{path}/conversions", json={"decision_id": decision["decision_id"]})
    assert answer.json() == {"verdicts": ["unknown"]}


def test_stats_count_decisions_and_verdicts(server: Server) -> None:
    server.http.put("/v1/bandits/counted", json={**SPEC, "policy": "OTFLinTS"})
    path = "/v1/bandits/counted"
    answers = [server.http.post(f"{path}/decisions", json={"actions": ROWS}).json() for _ in range(3)]
    ids = [answer["decision_id"] for answer in answers]
    server.http.post(f"{path}/conversions", json=[{"decision_id": i, "value": 0.5} for i in (*ids[:2], ids[0], "no")])
    stats = server.http.get(f"{path}/stats").json()
    assert stats["rounds"] == 3
    assert stats["conversions"] == {"accepted": 2, "duplicate": 1, "late": 0, "unknown": 1}
    assert sum(stats["delay_counts"]) == 2
    V, pending_width = np.eye(2), 0.0
    for action in (np.array(ROWS[answer["index"]]) for answer in answers):
        pending_width += float(action @ np.linalg.solve(V, action)) ** 0.5  # ‖A_s‖ in the norm of V_s⁻¹
        V += np.outer(action, action)
    assert stats["pending_width"] == pytest.approx(pending_width, rel=1e-9)
    assert len(stats["theta_hat"]) == 2
    assert stats["drift"] < 1e-8
    assert stats["delay_curve"] is stats["delay_band"] is None


def test_stats_have_the_delay_curve_of_a_policy_that_estimates_it(server: Server) -> None:
    server.http.put("/v1/bandits/curved", json=SPEC)
    stats = server.http.get("/v1/bandits/curved/stats").json()
    ages, shares = zip(*stats["delay_curve"], strict=True)
    assert stats["delay_band"] == [[1.0, 1.0]] * len(ages)
    assert ages[0] == 0.0
    assert list(ages) == sorted(ages)
    assert set(shares) == {1.0}  # nothing can have been seen yet: maturity is relative to what can


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_path_may_end_with_a_slash(server: Server, slash: str) -> None:
    made = server.http.post(f"/v1/bandits/b/decisions{slash}", json={"actions": ROWS})
    assert made.status_code == 201
    assert made.headers["content-type"] == "application/json"
    assert int(made.headers["content-length"]) == len(made.content)
    report = {"decision_id": made.json()["decision_id"]}
    for what, verdict in (("conversions", "accepted"), ("revocations", "accepted")):
        answer = server.http.post(f"/v1/bandits/b/{what}{slash}", json=report)
        assert (answer.status_code, answer.json()) == (200, {"verdicts": [verdict]})
    for what in ("decisions", "conversions", "revocations"):
        path = f"/v1/bandits/none/{what}{slash}"
        refused = server.http.post(path, json={"actions": ROWS} if what == "decisions" else report)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
        assert server.http.get(path).status_code == 405
        assert server.http.post(path, content=b"{}", headers={"Content-Type": "text/plain"}).status_code in (404, 415)
    assert server.http.post(f"/v1/bandits//decisions{slash}", json={"actions": ROWS}).status_code in (404, 405)


def test_a_path_with_a_slash_is_counted_as_the_same_route(server: Server) -> None:
    def count() -> float:
        line = 'latecomer_request_seconds_count{method="POST",route="/v1/bandits/{name}/decisions",'
        page = server.http.get("/metrics").text
        return sum(float(each.split()[-1]) for each in page.splitlines() if each.startswith(line))

    before = count()
    for slash in ("", "/"):
        server.http.post(f"/v1/bandits/b/decisions{slash}", json={"actions": ROWS})
    assert count() == before + 2


def test_a_request_id_with_other_features_of_the_same_rows_conflicts(server: Server) -> None:
    """Values beyond the scale of 20 are refused in either place."""

    def make_request(hour: float) -> dict[str, object]:
        return {"request_id": "scaled", "actions": [{"id": "x", "features": {"hour": hour}}]}

    first, again = (server.http.post(DESCRIBED, json=make_request(21)) for _ in range(2))
    assert (first.status_code, first.json()) == (201, again.json())
    other = server.http.post(DESCRIBED, json=make_request(22))
    assert (other.status_code, error_of(other)["code"]) == (409, "conflict")


MANY = "&".join(f"a{i}=1" for i in range(11))


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (MANY, "npy"),
        (MANY, "json"),
        ("request_id=", "npy"),
        ("request_id=%ff", "npy"),
        ("request_id=a&request_id=b", "npy"),
        ("request_id=a", "json"),
    ],
)
def test_a_bad_query_is_refused(server: Server, query: str, kind: str) -> None:
    file = io.BytesIO()
    np.save(file, np.array(ROWS))
    content = file.getvalue() if kind == "npy" else json.dumps({"actions": ROWS}).encode()
    headers = {"Content-Type": "application/x-npy" if kind == "npy" else "application/json"}
    for slash in ("", "/"):
        refused = server.http.post(f"/v1/bandits/b/decisions{slash}?{query}", content=content, headers=headers)
        assert (refused.status_code, error_of(refused)["code"]) == (400, "invalid")
    refused = server.http.delete(f"/v1/bandits/b?{MANY}")
    assert refused.status_code == 400


def test_every_policy_is_served_by_plain_python(tmp_path: Path) -> None:
    """Before there is machine code, answers have the same types: numbers of NumPy are no JSON."""
    with run_server(tmp_path / "a.db", LATECOMER_COMPILE="never") as server:
        for number, policy in enumerate(["recommended", *registry.POLICIES]):
            bandit = f"/v1/bandits/b{number}"
            created = server.http.put(bandit, json={"dim": 2, "window": 100, "policy": policy})
            assert created.status_code == 201, created.text
            answers = [server.http.post(f"{bandit}/decisions", json={"actions": ROWS}) for _ in range(3)]
            assert [answer.status_code for answer in answers] == [201] * 3, answers[0].text
            ids = [answer.json()["decision_id"] for answer in answers]
            assert all(isinstance(answer.json()["score"], float) for answer in answers)
            for kind in ("conversions", "revocations"):
                reported = server.http.post(f"{bandit}/{kind}", json=[{"decision_id": id_} for id_ in ids[:2]])
                assert reported.json() == {"verdicts": ["accepted"] * 2}, policy
            assert server.http.get(f"{bandit}/stats").json()["rounds"] == 3
        assert server.http.get("/metrics").status_code == 200
        assert server.logged("a request failed") == []
