"""The application: routes, authorises, answers and counts every request."""

from asyncio import CancelledError, Task, current_task
from collections.abc import Coroutine, Iterable
from time import perf_counter
from typing import Any, cast

from latecomer.service.http.context import AppContext
from latecomer.service.http.error_responses import ErrorResponses
from latecomer.service.http.errors import HTTPError
from latecomer.service.http.operations import PUBLIC
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response
from latecomer.service.http.router import Route, Router
from latecomer.service.http.routes import (
    bandits,
    catalogues,
    conversions,
    decisions,
    health,
    imports,
    page,
    personalizer,
)


class App:
    """Answers requests. `extra`: routes beyond those of the API, for benchmarks and tests."""

    def __init__(self, context: AppContext, *, extra: Iterable[Route] = ()) -> None:
        self._metrics, self._authenticator = context.metrics, context.authenticator
        self._errors = ErrorResponses(context)
        self._tasks: set[Task[Any]] = set()
        modules = (bandits, catalogues, decisions, conversions, imports, health, page, personalizer)
        self.routes = [*(route for module in modules for route in module.routes(context)), *extra]
        self._router = Router(self.routes, personalizer=context.settings.personalizer_bandit)
        self._tracing = context.tracing

    def __call__(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Answer a request. It counts as in flight at once, before its task runs, so that a commit waits for it."""
        self._metrics.in_flight += 1
        return self._answer(request) if self._tracing is None else self._tracing.trace(request, self._answer)

    async def _answer(self, request: Request) -> Response:
        metrics, task = self._metrics, cast(Task[Any], current_task())
        self._tasks.add(task)
        start = perf_counter()
        try:
            route = self._router.find(request)
            if isinstance(route, Response):
                response = route
            else:
                if route.operation.scope != PUBLIC:
                    request.key = self._authenticator.authorise(request, route.operation)
                response = await route.handler(request)
        except CancelledError:  # by `cancel_requests`
            stopping = HTTPError(503, "the server is stopping: ask again, with the same request id")
            response = self._errors.respond(request, stopping)
        except Exception as error:  # noqa: BLE001 - every error is answered
            response = self._errors.respond(request, error)
        finally:
            metrics.in_flight -= 1
            self._tasks.discard(task)
        metrics.observe_request(request.method, request.route, response.status, perf_counter() - start)
        return response

    def cancel_requests(self) -> None:
        """Answer every request that is still being handled with 503."""
        for task in self._tasks:
            task.cancel()

    def close(self) -> None:
        """Log how many lines the audit log has left out."""
        self._errors.audit_log.sum_up()
