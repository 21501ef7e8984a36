"""The router: every route is an operation of the table, and no operation is without a scope."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apps import app_context, make_request
from servers import Server, error_of, run_server

from latecomer.service.http.app import App
from latecomer.service.http.errors import HTTPError
from latecomer.service.http.keys import SCOPES, KeyFile
from latecomer.service.http.operations import OPERATIONS, PUBLIC, Operation
from latecomer.service.http.personalizer_operations import PERSONALIZER_OPERATIONS
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response
from latecomer.service.http.router import Route, Router

ONE: dict[str, Any] = {"name": "one", "method": "GET", "path": "/one", "summary": "One.", "gives": None}


async def handler(request: Request) -> Response:
    return Response(200)


@pytest.fixture(scope="module")
def router() -> Router:
    return Router([Route(operation, handler) for operation in OPERATIONS])


def test_an_operation_without_a_scope_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="scope"):
        Operation(**ONE)
    scopes: list[Any] = [None, "", "everything"]
    for scope in scopes:
        with pytest.raises(ValueError, match="scope of one must be public or one of decide"):
            Operation(**ONE, scope=scope)


def test_a_handler_without_an_operation_cannot_be_routed() -> None:
    with pytest.raises(TypeError, match="operation"):
        Route(handler=handler)  # type: ignore[call-arg]


def test_two_routes_of_one_path_and_method_are_refused() -> None:
    route = Route(Operation(**ONE, scope=PUBLIC), handler)
    with pytest.raises(ValueError, match="GET /one must have one route"):
        Router([route, route])


def test_the_app_routes_every_operation_of_the_table_and_nothing_else(tmp_path: Path) -> None:
    with app_context(tmp_path / "a.db") as context:
        routed = [route.operation.name for route in App(context).routes]
    assert sorted(routed) == sorted(operation.name for operation in (*OPERATIONS, *PERSONALIZER_OPERATIONS))


def test_only_probes_the_schema_and_the_empty_page_are_public() -> None:
    assert {operation.path for operation in OPERATIONS if operation.scope == PUBLIC} == {
        "/healthz",
        "/readyz",
        "/schema",
        "/",
        "/page/page.css",
        "/page/page.js",
        "/page/icon.svg",
    }


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server with a key of each scope."""
    store = tmp_path_factory.mktemp("router") / "a.db"
    file = KeyFile(Path(f"{store}.keys"))
    keys: dict[str, str] = {scope: file.add(scopes=[scope])[0] for scope in SCOPES}
    with run_server(store) as server:
        yield server, keys


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_needs_a_key_of_its_scope(keyed: tuple[Server, dict[str, str]], operation: Operation) -> None:
    """No key, and a key of each other scope, are refused before anything else is looked at."""
    server, keys = keyed
    target = operation.path.format(name="none")
    others: list[str | None] = [None, *(scope for scope in SCOPES if scope != operation.scope)]
    for scope in others if operation.scope != PUBLIC else []:
        headers = {} if scope is None else {"Authorization": f"Bearer {keys[scope]}"}
        answer = server.http.request(operation.method, target, headers=headers)
        assert answer.status_code == (401 if scope is None else 403), scope
        assert error_of(answer)["code"] == ("unauthorized" if scope is None else "forbidden")
    headers = {} if operation.scope == PUBLIC else {"Authorization": f"Bearer {keys[operation.scope]}"}
    assert server.http.request(operation.method, target, headers=headers).status_code not in (401, 403, 405)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("end", ["", "/"])
def test_a_path_is_found_with_and_without_a_slash_at_its_end(router: Router, operation: Operation, end: str) -> None:
    found = make_request(operation.method, operation.path.format(name="b%20c") + end)
    route = router.find(found)
    assert isinstance(route, Route)
    assert route.operation is operation
    assert found.route == operation.path
    assert found.bandit == ("b c" if "{name}" in operation.path else "")


@pytest.mark.parametrize(
    "target",
    [
        "/page",
        "",
        "///",
        "/v1",
        "/v1/bandits//decisions",
        "/v1/bandits/b/decisions/x",
        "/v1/bandits/a%2Fb",
        "/healthz//",
        "/V1/bandits",
    ],
)
def test_other_paths_are_404(router: Router, target: str) -> None:
    with pytest.raises(HTTPError) as caught:
        router.find(make_request("GET", target))
    assert caught.value.status == 404


def test_head_is_routed_as_get_and_options_lists_the_methods(router: Router) -> None:
    head = router.find(make_request("HEAD", "/v1/bandits/b"))
    assert isinstance(head, Route)
    assert head.operation.method == "GET"
    options = router.find(make_request("OPTIONS", "/v1/bandits/b"))
    assert isinstance(options, Response)
    assert options.headers == [(b"allow", b"DELETE, GET, HEAD, OPTIONS, PUT")]
    with pytest.raises(HTTPError) as caught:
        router.find(make_request("PATCH", "/v1/bandits/b"))
    assert (caught.value.status, caught.value.headers) == (405, options.headers)
