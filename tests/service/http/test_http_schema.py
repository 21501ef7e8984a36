"""The OpenAPI document: it is what the server does, and schemathesis finds nothing that says otherwise."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schema_rules import LIMITS, MADE, SETTINGS, is_beyond_a_schema
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import positive_data_acceptance
from servers import Server, error_of, run_server

from latecomer.service.http.openapi import write_document
from latecomer.service.http.operations import OPERATIONS

EXAMPLES = 50 if settings().max_examples >= 1000 else 2
"""Of each operation, in the soak and in the default run; a large body takes half a second to make."""
BRIEFLY = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("schema")
    with run_server(folder / "a.db", **LIMITS) as server:
        server.http.put("/v1/bandits/b", json=MADE).raise_for_status()
        yield server
        assert not server.logged("a request failed")


schema = schemathesis.openapi.from_dict(write_document(SETTINGS))


@schemathesis.serializer("application/x-npy")  # type: ignore[untyped-decorator]
def as_it_is(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.mark.filterwarnings("default")  # of the tool's own
@schema.exclude(path_regex="name").parametrize()  # type: ignore[untyped-decorator]
@BRIEFLY
def test_answers_match_the_schema(case: Any, server: Server) -> None:
    _validate(case, server)


@pytest.mark.soak
@pytest.mark.filterwarnings("default")
@schema.include(path_regex="name").parametrize()  # type: ignore[untyped-decorator]
@BRIEFLY
def test_answers_match_the_schema_for_any_name(case: Any, server: Server) -> None:
    """Few names are those of a bandit: of an unknown one, the last test tries each operation in the default run."""
    _validate(case, server)


@pytest.mark.filterwarnings("default")
@schema.include(path_regex="name").parametrize()  # type: ignore[untyped-decorator]
@BRIEFLY
def test_answers_match_the_schema_for_an_existing_bandit(case: Any, server: Server) -> None:
    if case.method != "DELETE":
        case.path_parameters["name"] = "b"
    _validate(case, server)


def _validate(case: Any, server: Server) -> None:
    """Every check; what is valid by the schema may yet break a rule that no schema can say, and none else."""
    try:
        answer = case.call_and_validate(base_url=server.url, excluded_checks=[positive_data_acceptance], timeout=60)
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
