"""The application: every route, one error shape, and a gate that counts."""

from asyncio import CancelledError, Task, current_task
from collections.abc import Mapping
from time import perf_counter
from typing import Any, cast

from litestar import HttpMethod, Litestar, Request, Response, route
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from latecomer import errors
from latecomer.service.http import bandits, conversions, decisions, probes
from latecomer.service.http.contract import OPERATIONS
from latecomer.service.http.direct import Respond, Shortcuts, send_answer
from latecomer.service.http.errors import CODES, Refusal, encoded, field_of
from latecomer.service.http.reception import Reception

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.InputError, 400),
    (errors.UnknownBanditError, 404),
    (errors.ConflictError, 409),
    (errors.StoreError, 503),
    (errors.QuarantinedError, 503),
)
_PLAIN = {404: "there is nothing at this address", 405: "this address does not take this method"}


class Gate:
    """The application as the server calls it: every request is counted in and out, and timed."""

    def __init__(self, reception: Reception, *, more: Mapping[str, Respond]) -> None:
        self._metrics = reception.metrics
        self._under_way: set[Task[Any]] = set()
        self._explainer = _Explainer(reception)
        self._shortcuts = Shortcuts({**decisions.responders(reception), **conversions.responders(reception), **more})
        handlers = [*bandits.routes(reception), *probes.routes(reception), *self._shortcuts.framed()]
        self._app = Litestar(
            [*map(_options, sorted({operation.path for operation in OPERATIONS})), *handlers],
            exception_handlers={Exception: self._explainer},
            openapi_config=None,
            logging_config=None,
            request_max_body_size=None,  # the intake has the limit
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        metrics, task = self._metrics, cast(Task[Any], current_task())
        metrics.in_flight += 1
        self._under_way.add(task)
        if scope["method"] == "HEAD":
            scope["method"] = "GET"  # what Granian leaves out is the body alone
        start = perf_counter()
        try:
            shortcut = self._shortcuts.find(scope)
            if shortcut is None:
                await self._app(scope, receive, send)
            else:
                await self._answer(shortcut, scope, receive, send)
        except CancelledError:  # by `cut_off`
            await self._refuse(scope, send, Refusal(503, "the server is stopping: ask again, with the same request id"))
        finally:
            metrics.in_flight -= 1
            self._under_way.discard(task)
            metrics.answered(scope["method"], scope.get("path_template", ""), perf_counter() - start)

    def cut_off(self) -> None:
        """Whoever is still waiting for an answer is told to ask again."""
        for task in self._under_way:
            task.cancel()

    async def _answer(self, shortcut: tuple[str, str, Respond], scope: Any, receive: Any, send: Any) -> None:
        scope["path_template"], name, respond = shortcut
        try:
            status, body = await respond(scope, receive, name)
        except Exception as error:  # noqa: BLE001 - what went wrong is an answer too
            await self._refuse(scope, send, error)
        else:
            await send_answer(send, status, body)

    async def _refuse(self, scope: Any, send: Any, error: Exception) -> None:
        status, body, headers = self._explainer.explained(scope, error)
        await send_answer(send, status, body, headers)


def _options(path: str) -> HTTPRouteHandler:
    """What a path takes. Litestar's own answer names only the method that was registered first."""
    methods = {operation.method.upper() for operation in OPERATIONS if operation.path == path}
    allow = ", ".join(sorted({*methods, "OPTIONS", *({"HEAD"} if "GET" in methods else ())}))

    @route(path.replace("{name}", "{name:str}"), http_method=[HttpMethod.OPTIONS], status_code=200)
    async def options() -> ASGIResponse:
        return ASGIResponse(status_code=204, headers={"allow": allow})

    return options


def _with_head(headers: Mapping[str, str]) -> dict[str, str]:
    """What takes GET takes HEAD, which the framework does not know."""
    return {
        name: f"{value}, HEAD" if name.lower() == "allow" and "GET" in value else value
        for name, value in headers.items()
    }


class _Explainer:
    """What was raised, as an answer. What nobody foresaw is logged, and not shown."""

    def __init__(self, reception: Reception) -> None:
        self._reception = reception

    def __call__(self, request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        """For the framework."""
        status, body, headers = self.explained(request.scope, error)
        return Response(body, status_code=status, headers=headers, media_type="application/json")

    def explained(self, scope: Any, error: Exception) -> tuple[int, bytes, dict[str, str]]:
        """The status, the body and the headers."""
        refusal, headers = self._refusal(scope, error)
        self._reception.metrics.refused(CODES[refusal.status])
        if refusal.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        elif refusal.status == 503:
            headers["Retry-After"] = "1"
        return refusal.status, encoded(refusal), headers

    def _refusal(self, scope: Any, error: Exception) -> tuple[Refusal, dict[str, str]]:
        if isinstance(error, Refusal):
            return error, {}
        if isinstance(error, HTTPException) and error.status_code in CODES and error.status_code < 500:
            message = _PLAIN.get(error.status_code, error.detail)
            return Refusal(error.status_code, message), _with_head(error.headers or {})
        for kind, status in _STATUS:
            if isinstance(error, kind):
                return Refusal(status, str(error), field=field_of(str(error)) if status == 400 else None), {}
        log = self._reception.log
        log.error("a request failed", method=scope["method"], route=scope.get("path_template"), exc_info=error)
        return Refusal(500, "this should not have happened; the server's log says more"), {}
