"""The document is as strict as the server: every rule that a schema can say, it says; whatever it says, is a rule."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import compress
from typing import Any

import httpx
import jsonschema_rs
import pytest
from schema_rules import LIMITS, MADE, SETTINGS, is_beyond_a_schema
from servers import Server, error_of, run_server

from latecomer.policies.registry import POLICIES
from latecomer.service.bandit.spec_policies import NOT_PARAMETERS
from latecomer.service.http.openapi import write_document
from latecomer.service.http.openapi_rules import PARAMETERS

DOCUMENT = write_document(SETTINGS)
BANDIT = "/v1/bandits/{name}"
PATHS = {
    "spec": ("PUT", BANDIT),
    "decision": ("POST", f"{BANDIT}/decisions"),
    "conversion": ("POST", f"{BANDIT}/conversions"),
    "revocation": ("POST", f"{BANDIT}/revocations"),
    "correction": ("POST", f"{BANDIT}/corrections"),
    "activation": ("POST", f"{BANDIT}/activations"),
    "freeze": ("PUT", f"{BANDIT}/freeze"),
    "stage": ("POST", f"{BANDIT}/stages"),
}
ROW, WHEN = [0.5, 0.0, -0.5], "2026-01-02T03:04:05Z"
EXAMPLES: list[tuple[str, Any]] = [
    ("spec", MADE),
    ("spec", {"dim": 3, "window": "7d", "policy": "OTFLinUCB", "parameters": {"width": "tight", "delta": 0.1}}),
    ("spec", {"dim": 1, "window": 0, "policy": "OTFLinTS", "parameters": {"beta": "heuristic", "seed": 1}}),
    ("spec", {"dim": 2, "window": 9, "parameters": {"ridge": 2.0, "prior": 1, "context_discount": 0.5, "optimism": 0}}),
    ("spec", {"dim": 2, "window": 9, "parameters": {"stages": ["click", "cart"], "stage_prior": 4}}),
    ("spec", {"dim": 3, "window": 9, "features": {"x": {"scale": 1, "center": -1}}}),
    ("spec", {"dim": 3, "window": 9, "encoder": {"version": 1, "dim": 3, "scales": {"x": {"scale": 1, "center": -1}}}}),
    (
        "spec",
        {
            "dim": 3,
            "window": 9,
            "features": {},
            "encoder": {
                "dim": 3,
                "context": [{"kind": "one-hot", "name": "c", "levels": ["x"]}],
                "actions": [{"kind": "number", "name": "p", "scale": 2, "center": 1}],
                "interactions": [],
            },
        },
    ),
    (
        "spec",
        {"dim": 3, "window": 9, "encoder": {"dim": 3, "actions": [{"kind": "hashed", "name": "s", "known": ["x"]}]}},
    ),
    ("decision", {"actions": [ROW, ROW], "ids": ["x", "y"], "request_id": None, "context": None}),
    ("decision", {"actions": [ROW] * 4}),
    (
        "decision",
        {
            "actions": [{"id": "x", "features": {"a": 1, "b": "c", "d": ["e"], "f": True, "g": None}}],
            "context": {"h": -1, "price": 5},
            "ids": None,
        },
    ),
    ("conversion", {"decision_id": "x", "value": 0.5, "occurred_at": WHEN}),
    ("conversion", [{"decision_id": "x", "value": 1}]),
    ("conversion", {"subject": "x", "value": 1}),
    ("conversion", {"decision_id": "x", "value": None, "conversion_id": "y"}),
    ("revocation", {"conversion_id": "y"}),
    ("stage", {"decision_id": "x", "stage": "click", "occurred_at": WHEN}),
    ("correction", {"decision_id": "x", "value": 0.5, "occurred_at": WHEN}),
    ("spec", {"dim": 3, "window": "7d", "reward": {"scale": 200, "aggregate": "max", "unit": "EUR"}, "returns": "30d"}),
    ("spec", {"dim": 3, "window": 7, "challenger": {"policy": "LinUCB", "parameters": {"ridge": 2}, "share": 0.2}}),
    ("activation", [{"decision_id": "x"}]),
    ("freeze", {"frozen": False}),
    ("decision", {"actions": [ROW], "deferred": True, "subject": "x"}),
    ("spec", {"dim": 3, "window": "7d", "grace": "1d", "activation_timeout": "1h", "attribution": "all"}),
    ("spec", {"dim": 3, "window": 7, "grace": None, "activation_timeout": 1}),
    ("revocation", {"decision_id": "x", "occurred_at": None}),
    ("revocation", [{"decision_id": "x", "occurred_at": WHEN}]),
]
ODD: list[Any] = [
    *(None, True, -1, 0, 0.5, 1, 1.5, 4, 9, 1e7, 1e300, 2**62, "", "x", "x" * 200, "x" * 201, WHEN, "soon"),
    *("7d", "36500d", "36501d", "00000000007d", "0000000000007d", "7", "d", "7y", "-7d", "5214w", "5215w"),
    *("0000-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "recommended", "Uniform", "exact", "os.system"),
    *([], [ROW], [ROW] * 5, [[]], [[0.0] * 4], ["x"], ["x"] * 5, [1], [{}], {}, {"x": 1}, {"x": {"scale": 0}}),
    *({"x": {"scale": 2}}, {"ridge": 0}, {"seed": 1.5}, {"delta": 1}, {"width": "wide"}, {"unknown": 1}),
]
MANY = [{"decision_id": "x"}] * 10_001


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("rules") / "a.db", **LIMITS) as server:
        send(server, "spec", MADE).raise_for_status()
        yield server
        assert not server.logged("a request failed")


@cache
def validator(kind: str) -> Any:
    method, path = PATHS[kind]
    operation = DOCUMENT["paths"][path][method.lower()]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    whole = {**schema, "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def send(server: Server, kind: str, body: Any) -> httpx.Response:
    method, path = PATHS[kind]
    headers = {"Content-Type": "application/json"}
    return server.http.request(method, path.format(name="b"), content=json.dumps(body), headers=headers)


def changed(body: Any) -> Iterator[Any]:
    """The body with something odd in each of its places, with one key less, and with one more."""
    yield from ODD
    if isinstance(body, dict):
        yield {**body, "unknown": 1}
        for key, value in body.items():
            yield {name: other for name, other in body.items() if name != key}
            yield from ({**body, key: odd} for odd in changed(value))
    elif isinstance(body, list):
        for place, value in enumerate(body[:2]):
            yield from ([*body[:place], odd, *body[place + 1 :]] for odd in changed(value))


@pytest.mark.parametrize("stride", [15, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_schema_and_the_server_agree(server: Server, number: int, stride: int) -> None:
    """A bandit that is there makes a specification that keeps the rules a conflict, and nothing has to be compiled."""
    kind, example = EXAMPLES[number]
    schema = validator(kind)
    assert schema.is_valid(example)
    is_first = stride == 1 or kind not in [earlier for earlier, _ in EXAMPLES[:number]]
    long = (MANY, MANY[1:]) if is_first else ()  # of a kind once, in the default run
    every = {json.dumps(body): body for body in (example, *long, *changed(example))}
    chosen = [place < 3 or place % stride == number % stride for place in range(len(every))]
    bodies = list(compress(every.items(), chosen))
    wrong, taken = [], 0
    for text, body in bodies:
        answer = send(server, kind, body)
        if not schema.is_valid(body):
            agree = answer.status_code == 400
        else:
            taken += 1
            agree = answer.status_code in (200, 201, 409) or is_beyond_a_schema(error_of(answer)["message"])
        if not agree:
            wrong.append((schema.is_valid(body), text[:300], answer.status_code, answer.text[:200]))
    assert wrong == []
    assert 0 < taken < len(bodies) - 50 / stride


def test_a_control_and_a_challenger_exclude_each_other(server: Server) -> None:
    controlled = {"dim": 3, "window": 7, "parameters": {"control": {"share": 0.1, "policy": 0}}}
    contested = {"challenger": {"policy": "LinUCB"}}
    for more, status in (
        ({}, 409),
        ({"challenger": None}, 409),
        (contested, 400),
        ({**contested, "parameters": {}}, 409),
    ):
        body = controlled | more
        assert send(server, "spec", body).status_code == status, body
        assert validator("spec").is_valid(body) is (status != 400), body


def test_every_parameter_of_every_policy_is_described() -> None:
    import inspect

    from latecomer.policies.registry import policy_class

    named = {name for policy in POLICIES for name in inspect.signature(policy_class(policy)).parameters}
    assert named - set(NOT_PARAMETERS) == set(PARAMETERS)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_takes_its_own_parameters_alone(server: Server, policy: str) -> None:
    values = {"width": "exact", "beta": "heuristic", "seed": 1}
    for parameter in PARAMETERS:
        body = {"dim": 2, "window": 7, "policy": policy, "parameters": {parameter: values.get(parameter, 0.5)}}
        answer = send(server, "spec", body)
        assert (answer.status_code == 400) is not validator("spec").is_valid(body), (body, answer.text)
