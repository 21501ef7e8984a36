"""The application: every route, one error shape, and a gate that counts."""

import os
from asyncio import CancelledError, Task, current_task
from collections.abc import Coroutine, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from litestar import HttpMethod, Litestar, Request, Response, route
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from latecomer import errors
from latecomer.service.http.context import AppContext
from latecomer.service.http.errors import CODES, HTTPError, encoded, field_of
from latecomer.service.http.limited_log import LimitedLog
from latecomer.service.http.operations import OPERATIONS
from latecomer.service.http.router import Respond, Shortcuts, send_answer
from latecomer.service.http.routes import bandits, conversions, decisions
from latecomer.service.http.routes import health as probes

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.InputError, 400),
    (errors.UnknownBanditError, 404),
    (errors.ConflictError, 409),
    (errors.StoreError, 503),
    (errors.FileError, 503),
)
_PLAIN = {404: "there is nothing at this address", 405: "this address does not take this method"}


class App:
    """The application as the server calls it: every request is counted in and out, and timed."""

    def __init__(self, reception: AppContext, *, more: Mapping[str, Respond]) -> None:
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

    def __call__(self, scope: Any, receive: Any, send: Any) -> Coroutine[Any, Any, None]:
        """Answer one request. It counts from now on, before its task runs: a commit then waits for all that came."""
        self._metrics.in_flight += 1
        return self._handle(scope, receive, send)

    async def _handle(self, scope: Any, receive: Any, send: Any) -> None:
        metrics, task = self._metrics, cast(Task[Any], current_task())
        self._under_way.add(task)
        if scope["method"] == "HEAD":
            scope["method"] = "GET"  # the connection leaves the body out
        start, status = perf_counter(), 500
        try:
            shortcut = self._shortcuts.find(scope)
            if shortcut is None:
                status = await self._answer_framed(scope, receive, send)
            else:
                status = await self._answer(shortcut, scope, receive, send)
        except CancelledError:  # by `cut_off`
            refusal = HTTPError(503, "the server is stopping: ask again, with the same request id")
            status = await self._refuse(scope, send, refusal)
        finally:
            metrics.in_flight -= 1
            self._under_way.discard(task)
            metrics.answered(scope["method"], scope.get("path_template", ""), status, perf_counter() - start)

    def cut_off(self) -> None:
        """Whoever is still waiting for an answer is told to ask again."""
        for task in self._under_way:
            task.cancel()

    def close(self) -> None:
        """Say in the log what it has kept to itself."""
        self._explainer.audit.sum_up()

    async def _answer_framed(self, scope: Any, receive: Any, send: Any) -> int:
        """Leave it to the framework; the status is what it sends."""
        status = 500

        async def noting(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self._app(scope, receive, noting)
        return status

    async def _answer(self, shortcut: tuple[str, str, Respond], scope: Any, receive: Any, send: Any) -> int:
        scope["path_template"], name, respond = shortcut
        try:
            status, body = await respond(scope, receive, name)
        except Exception as error:  # noqa: BLE001 - what went wrong is an answer too
            return await self._refuse(scope, send, error)
        await send_answer(send, status, body)
        return status

    async def _refuse(self, scope: Any, send: Any, error: Exception) -> int:
        status, body, headers = self._explainer.explained(scope, error)
        await send_answer(send, status, body, headers)
        return status


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

    def __init__(self, reception: AppContext) -> None:
        self._reception = reception
        self.audit = LimitedLog(reception.log)

    def __call__(self, request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        """For the framework."""
        status, body, headers = self.explained(request.scope, error)
        return Response(body, status_code=status, headers=headers, media_type="application/json")

    def explained(self, scope: Any, error: Exception) -> tuple[int, bytes, dict[str, str]]:
        """The status, the body and the headers."""
        refusal, headers = self._refusal(scope, error)
        self._reception.metrics.refused(CODES[refusal.status])
        if refusal.status in (401, 403):
            self.audit.warn(
                "request refused",
                status=refusal.status,
                key=refusal.key,
                method=scope["method"],
                route=scope.get("path_template"),
                address=scope["client"][0],
            )
        if refusal.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        elif refusal.status == 503:
            headers["Retry-After"] = "1"
        return refusal.status, encoded(refusal), headers

    def _refusal(self, scope: Any, error: Exception) -> tuple[HTTPError, dict[str, str]]:
        if isinstance(error, HTTPError):
            return error, {}
        if isinstance(error, HTTPException) and error.status_code in CODES and error.status_code < 500:
            message = _PLAIN.get(error.status_code, error.detail)
            return HTTPError(error.status_code, message), _with_head(error.headers or {})
        for kind, status in _STATUS:
            if isinstance(error, kind):
                message = self._message(error)
                return HTTPError(status, message, field=field_of(message) if status == 400 else None), {}
        log = self._reception.log
        log.error("a request failed", method=scope["method"], route=scope.get("path_template"), exc_info=error)
        return HTTPError(500, "this should not have happened; the server's log says more"), {}

    def _message(self, error: Exception) -> str:
        """Give its words, without the folder of this machine in which the store lies."""
        store, message = Path(self._reception.settings.store), str(error)
        if isinstance(error, errors.FileError):
            for path in (os.path.realpath(store), str(store)):
                message = message.replace(path, store.name)
        return message
