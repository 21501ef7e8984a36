"""The OpenAPI document: it is what the server does, and schemathesis finds nothing that says otherwise."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schema_rules import LIMITS, MADE, SETTINGS, is_beyond_a_schema
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import positive_data_acceptance
from servers import Server, error_of, run_server

from latecomer.service.http.openapi import write_document
from latecomer.service.http.operations import OPERATIONS

IS_SOAK = settings().max_examples >= 1000
EXAMPLES = 50 if IS_SOAK else 2
"""Of each operation, in the soak and in the default run; a large body takes half a second to make."""
LARGE = ("PUT {}", "POST {}/decisions", "PUT {}/actions", "POST {}/conversions", "POST {}/stages", "POST {}/imports")
"""Operations whose bodies have 1,900 of the 2,200 edge cases that the tool derives from the document: those are tried
in the soak. In the default run, test_http_schema_rules.py puts odd values into each place of most of these bodies, and
wrong catalogues and imports are refused by tests of their own."""
BRIEFLY = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Keep one connection for all requests, and look for no proxy."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("schema")
    with run_server(folder / "a.db", **LIMITS) as server:
        server.http.put("/v1/bandits/b", json=MADE).raise_for_status()
        yield server
        assert not server.logged("a request failed")


def configure() -> SchemathesisConfig:
    names = [name.format("/v1/bandits/{name}") for name in LARGE]
    without_edges = {"include-name": names, "phases": {"coverage": {"enabled": False}}}
    return SchemathesisConfig.from_dict({"operations": [] if IS_SOAK else [without_edges]})


schema = schemathesis.openapi.from_dict(write_document(SETTINGS), config=configure())


@schemathesis.serializer("application/x-npy")  # type: ignore[untyped-decorator]
def as_it_is(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.mark.filterwarnings("default")  # of the tool's own
@schema.exclude(path_regex="name").parametrize()  # type: ignore[untyped-decorator]
@BRIEFLY
def test_answers_match_the_schema(case: Any, server: Server, session: requests.Session) -> None:
    _validate(case, server, session)


@pytest.mark.soak
@pytest.mark.filterwarnings("default")
@schema.include(path_regex="name").parametrize()  # type: ignore[untyped-decorator]
@BRIEFLY
def test_answers_match_the_schema_for_any_name(case: Any, server: Server, session: requests.Session) -> None:
    """Few names are those of a bandit: of an unknown one, the last test tries each operation in the default run."""
    _validate(case, server, session)


@pytest.mark.filterwarnings("default")
@schema.include(path_regex="name").parametrize()  # type: ignore[untyped-decorator]
@BRIEFLY
def test_answers_match_the_schema_for_an_existing_bandit(case: Any, server: Server, session: requests.Session) -> None:
    if case.method != "DELETE":
        case.path_parameters["name"] = "b"
    _validate(case, server, session)


def _validate(case: Any, server: Server, session: requests.Session) -> None:
    """Every check; what is valid by the schema may yet break a rule that no schema can say, and none else."""
    unchecked = [positive_data_acceptance]
    try:
        answer = case.call_and_validate(server.url, session, excluded_checks=unchecked, timeout=60)
    except FailureGroup as group:
        raise AssertionError("\n".join(f"{type(e).__name__}: {e}" for e in group.exceptions)) from None
    if answer.status_code == 400 and case.meta.generation.mode.is_positive:
        assert is_beyond_a_schema(answer.json()["error"]["message"]), (case.body, answer.text)


def test_every_operation_answers_with_a_documented_status(server: Server) -> None:
    """Each operation answers, and with a status that it lists; of an unknown bandit with an error body."""
    described = server.http.get("/schema").json()
    assert described == write_document(SETTINGS)
    assert described["openapi"].startswith("3.1")
    for operation in OPERATIONS:
        answer = server.http.request(operation.method, operation.path.format(name="none"))
        assert str(answer.status_code) in described["paths"][operation.path][operation.method.lower()]["responses"]
        assert answer.status_code != 405
        if "{name}" in operation.path:
            assert error_of(answer)
