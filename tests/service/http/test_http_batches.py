"""Batches of decisions over HTTP: one commit, outcomes in order, each request with its own error."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import pytest
from servers import Server, error_of, run_server

from latecomer.errors import ConflictError, InputError
from latecomer.service.messages import DecisionAnswer

PATH = "/v1/bandits/b/decisions"
ROWS = [[0.6, 0.0], [0.0, 0.8]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("batches") / "a.db") as server:
        assert server.http.put("/v1/bandits/b", json={"dim": 2, "window": 1000}).status_code == 201
        assert server.http.put("/v1/bandits/u", json={"dim": 2, "window": 9, "policy": "Uniform"}).status_code == 201
        spec = {"dim": 5, "window": 1000, "features": {"price": {"scale": 20}}}
        assert server.http.put("/v1/bandits/f", json=spec).status_code == 201
        yield server


def rounds(server: Server) -> int:
    found: int = server.http.get("/v1/bandits/b/stats").json()["rounds"]
    return found


def post(server: Server, body: Any, key: str | None = None) -> list[dict[str, Any]]:
    answer = server.http.post(PATH, json=body, headers={} if key is None else {"Idempotency-Key": key})
    assert answer.status_code == 201, answer.text
    outcomes: list[dict[str, Any]] = answer.json()
    return outcomes


BAD = {
    "a norm": ({"actions": [[2.0, 0.0]]}, "invalid", "actions"),
    "columns": ({"actions": [[0.1]]}, "invalid", "actions"),
    "no actions": ({"actions": []}, "invalid", "actions"),
    "missing": ({}, "invalid", None),
    "a name": ({"actions": ROWS, "arms": 3}, "invalid", None),
    "a number": (7, "invalid", None),
    "ids": ({"actions": ROWS, "ids": ["x"]}, "invalid", "ids"),
    "no number": ({"actions": [["1", 0.0]]}, "invalid", "actions[...]"),
    "request_id": ({"actions": ROWS, "request_id": ""}, "invalid", "request_id"),
    "exclude": ({"actions": ROWS, "exclude": [0, 1]}, "invalid", "exclude"),
    "pin": ({"actions": ROWS, "pin": "x"}, "invalid", "pin"),
    "conflict": ({"actions": ROWS[:1], "request_id": "taken"}, "conflict", None),
}


def test_each_request_has_its_own_outcome_and_all_have_one_commit(server: Server) -> None:
    before = rounds(server)
    commits = server.http.get("/metrics").text
    good = {"actions": ROWS, "ids": ["x", "y"]}
    body: list[Any] = [{"actions": ROWS, "request_id": "taken"}]
    for request, _, _ in BAD.values():
        body += [request, good]
    outcomes = post(server, body)
    assert len(outcomes) == len(body)
    assert [o["decision"]["round"] for o in outcomes if "decision" in o] == list(
        range(before + 1, before + len(BAD) + 2)
    )
    for (_, code, field), outcome in zip(BAD.values(), outcomes[1::2], strict=True):
        assert set(outcome) == {"error"}
        assert outcome["error"]["code"] == code
        assert field is None or outcome["error"]["field"].startswith(field[:7]), outcome
    assert rounds(server) == before + len(BAD) + 1
    name = "latecomer_commits_total "
    if name in commits:
        after = server.http.get("/metrics").text
        assert float(after.split(name)[1].split()[0]) == float(commits.split(name)[1].split()[0]) + 1
    report = {"decision_id": outcomes[-1]["decision"]["decision_id"]}
    assert server.http.post("/v1/bandits/b/conversions", json=report).json() == {"verdicts": ["accepted"]}


WHOLE = {
    "empty": (b"[]", "a batch must have 1 to 1,000 requests; got 0"),
    "long": (json.dumps([{"actions": [[0.1, 0.1]]}] * 1001).encode(), "a batch must have 1 to 1,000 requests"),
    "cut": (b'[{"actions": [[0.1, 0.1]]}, {', "the body must be whole JSON"),
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_batch_that_is_none_is_refused_as_a_whole(server: Server, case: str) -> None:
    before, (body, message) = rounds(server), WHOLE[case]
    answer = server.http.post(PATH, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert error_of(answer)["message"].startswith(message)
    assert rounds(server) == before


FEATURES: dict[str, tuple[dict[str, Any], str]] = {
    "no scale": ({"actions": [{"id": "a", "features": {"weight": 100}}]}, "actions[0]"),
    "a context without a scale": ({"actions": [{"id": "a", "features": {}}], "context": {"hour": 900}}, "context"),
    "no vector": ({"actions": [[0.1, 0.1]]}, "actions"),
    "no candidates": ({"candidates": []}, "candidates"),
    "a candidate twice": ({"candidates": ["a", "a"]}, "candidates[1]"),
    "an index of a catalogue": ({"exclude": [0]}, "exclude[0]"),
    "candidates and exclude": ({"candidates": ["a"], "exclude": ["b"]}, "exclude"),
    "no such candidate": ({"candidates": ["zz"]}, "candidates[0]"),
    "an id twice": ({"actions": [{"id": "a", "features": {}}, {"id": "a", "features": {"x": "y"}}]}, "ids"),
}


def test_features_and_catalogues_have_their_own_errors(server: Server) -> None:
    put = {"actions": [{"id": "a", "features": {"price": 3}}, {"id": "b", "features": {"price": 9}}]}
    assert server.http.put("/v1/bandits/f/actions", json=put).status_code == 200
    good = {"actions": [{"id": "a", "features": {"colour": "red"}}]}
    body: list[Any] = [good]
    for request, _ in FEATURES.values():
        body += [request, good, {}]
    answer = server.http.post("/v1/bandits/f/decisions", json=body)
    assert answer.status_code == 201, answer.text
    outcomes = answer.json()
    assert all("decision" in each for place, each in enumerate(outcomes) if place % 3 != 1)
    assert [each["error"]["field"] for each in outcomes[1::3]] == [field for _, field in FEATURES.values()]
    assert {each["error"]["code"] for each in outcomes[1::3]} == {"invalid"}


def test_features_are_refused_one_by_one_where_the_bandit_is_too_small(server: Server) -> None:
    outcomes = post(server, [{"actions": ROWS}, {"actions": [{"id": "a", "features": {"x": "y"}}]}, {"actions": ROWS}])
    assert ["decision" in each for each in outcomes] == [True, False, True]
    assert "at least 3 dimensions" in outcomes[1]["error"]["message"]
    with server.client() as client:
        answers = client.decide_many("b", [{"actions": ROWS}, {"actions": {"a": {"x": "y"}}}])
        assert [type(found) for found in answers] == [DecisionAnswer, InputError]


def test_an_unknown_bandit_refuses_the_batch(server: Server) -> None:
    assert server.http.post("/v1/bandits/none/decisions", json=[{"actions": ROWS}]).status_code == 404


def test_a_thousand_in_one_batch(server: Server) -> None:
    outcomes = server.http.post("/v1/bandits/u/decisions", json=[{"actions": ROWS}] * 1000).json()
    assert len({outcome["decision"]["decision_id"] for outcome in outcomes}) == 1000


def test_batches_and_single_requests_at_once_lose_nothing(server: Server) -> None:
    """A long batch is decided beside the loop; where there is no machine code yet, others get turns in between."""
    before = rounds(server)

    def send(body: Any) -> list[int]:
        found = server.http.post(PATH, json=body).json()
        return [each.get("decision", each)["round"] for each in (found if isinstance(body, list) else [found])]

    bodies: list[Any] = [[{"actions": ROWS}] * 150, {"actions": ROWS}, [{"actions": ROWS}] * 20] * 10
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(send, bodies))
    for each in made:
        assert each == sorted(each)
    assert sorted(chain.from_iterable(made)) == list(range(before + 1, before + 1 + 1710))
    assert rounds(server) == before + 1710


def test_the_idempotency_key_is_the_request_id(server: Server) -> None:
    def decide(key: str, path: str = PATH, **body: Any) -> Any:
        return server.http.post(path, json={"actions": ROWS} | body, headers={"Idempotency-Key": key})

    first = decide("k1").json()
    assert decide("k1").json() == decide('"k1"').json() == first  # quoted, as RFC 8941 has texts
    assert server.http.post(PATH, json={"actions": ROWS, "request_id": "k1"}).json() == first
    assert decide("k1", request_id="k1").json() == first
    assert decide("k2").json()["round"] == first["round"] + 1
    assert error_of(decide("k1", actions=ROWS[:1]))["code"] == "conflict"
    assert error_of(decide("k1", request_id="k3"))["field"] == "request_id"
    for wrong in ("", "x" * 196):
        answer = decide(wrong)
        assert (answer.status_code, error_of(answer)["field"]) == (400, "Idempotency-Key")
    described = {"actions": [{"id": "a", "features": {"price": 3}}]}
    one = decide("k1", "/v1/bandits/f/decisions", **described).json()
    assert decide("k1", "/v1/bandits/f/decisions", **described).json() == one


def test_a_batch_with_a_key_is_decided_once(server: Server) -> None:
    body = [{"actions": ROWS}, {"actions": [[3.0, 0.0]]}, {"actions": ROWS, "request_id": "own"}]
    first = post(server, body, "nightly")
    before = rounds(server)
    assert post(server, body, "nightly") == first
    assert rounds(server) == before
    alone = server.http.post(PATH, json={"actions": ROWS, "request_id": "own"})
    assert alone.json() == first[2]["decision"]
    changed = post(server, [{"actions": ROWS[:1]}, *body[1:]], "nightly")
    assert (changed[0]["error"]["code"], changed[2]) == ("conflict", first[2])


def test_the_client_returns_errors_in_their_place(server: Server) -> None:
    with server.client() as client:
        requests: list[dict[str, Any]] = [
            {"actions": ROWS, "ids": ["x", "y"], "request_id": "c1"},
            {"actions": [[2.0, 0.0]]},
            {"actions": ROWS[:1], "request_id": "c1"},
        ]
        answers = client.decide_many("b", requests * 400)  # two round trips
        first = answers[0]
        assert isinstance(first, DecisionAnswer)
        assert answers[3] == first == client.decide("b", ROWS, ids=["x", "y"], request_id="c1")
        assert [type(found) for found in answers[:3]] == [type(first), InputError, ConflictError]
        assert len(answers) == 1200
        assert client.decide("b", ROWS, pin=1).index == client.decide("b", ROWS, exclude=[0]).index == 1
        with pytest.raises(InputError, match="exclude must have the index of one of 2 actions"):
            client.decide("b", ROWS, exclude=[2])


def test_what_the_client_itself_refuses_is_not_sent(server: Server) -> None:
    wrong: list[Any] = [
        {"actions": ROWS, "idz": ["x", "y"]},
        {"actions": {5: {}}},
        {"actions": [object()]},
        {"actions": ROWS, "request_id": ""},
        7,
    ]
    with server.client() as client:
        before = rounds(server)
        answers = client.decide_many("b", [{"actions": ROWS}, *wrong, {"actions": ROWS}])
        assert [type(found) for found in answers] == [DecisionAnswer, *[InputError] * 5, DecisionAnswer]
        assert str(answers[1]).startswith("request 1 must have no arguments but actions, ids, request_id")
        assert rounds(server) == before + 2
        assert [type(found) for found in client.decide_many("b", wrong)] == [InputError] * 5
        for none in (5, "ab", {"actions": ROWS}):
            with pytest.raises(InputError, match="requests must be a list of dicts"):
                client.decide_many("b", none)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"conversions must be .* records; got 5 at 0"):
            client.convert_many("b", [5])  # type: ignore[list-item]
