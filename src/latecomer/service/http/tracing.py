"""Traces of requests by OpenTelemetry: a span for each, with a child for the store's work and one for its commit.

There are traces where the package opentelemetry-api is installed and somebody has set up a provider, as
`opentelemetry-instrument latecomer serve` does. Otherwise `find_tracing` returns None, and nothing is done.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib.util import find_spec
from time import time_ns
from typing import TYPE_CHECKING, Any

from latecomer.service.http.pending_decision import PendingDecision
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class Tracing:
    """Makes the spans of a server.

    Parameters
    ----------
    tracer
        Where they go.
    """

    def __init__(self, tracer: "Tracer") -> None:
        self._tracer = tracer

    async def trace(self, request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        """Answer a request inside a span of its own, which continues the trace of the caller."""
        from opentelemetry import propagate  # noqa: PLC0415 - it is there, since there is a tracer
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415

        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        with self._tracer.start_as_current_span(
            request.method, context=propagate.extract(carrier), kind=SpanKind.SERVER
        ) as span:
            response = await answer(request)
            span.update_name(f"{request.method} {request.route}".rstrip())
            span.set_attribute("http.request.method", request.method)
            span.set_attribute("http.route", request.route)
            span.set_attribute("http.response.status_code", response.status)
            if request.bandit:
                span.set_attribute("latecomer.bandit", request.bandit)
            if response.status >= 500:
                span.set_status(StatusCode.ERROR)
            return response

    def child(self, name: str) -> AbstractContextManager[Any]:
        """Return a span inside the current one."""
        return self._tracer.start_as_current_span(name)

    def follow(self, pending: PendingDecision) -> None:
        """Trace a decision of the current request: until it is made, and from then until it is durable."""
        pending.future.add_done_callback(partial(self._trace_decision, pending, time_ns()))  # in this context

    def _trace_decision(self, pending: PendingDecision, begun: int, _: "asyncio.Future[Any]") -> None:
        made = pending.made_at or begun
        if pending.made_at:
            self._tracer.start_span("store", start_time=begun).end(made)
        self._tracer.start_span("commit", start_time=made).end()


def find_tracing() -> Tracing | None:
    """Return the traces of this process; None where the package is missing or nobody has set up a provider."""
    if find_spec("opentelemetry") is None:
        return None
    from opentelemetry import trace  # noqa: PLC0415

    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return Tracing(provider.get_tracer("latecomer"))
