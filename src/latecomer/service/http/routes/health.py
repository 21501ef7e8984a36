"""/healthz, /readyz, /metrics and /schema: for supervisors, monitoring and generators of clients."""

import asyncio
from functools import cache

from latecomer.errors import StoreError
from latecomer.service.http import operations
from latecomer.service.http.bodies import Readiness, State
from latecomer.service.http.context import AppContext
from latecomer.service.http.openapi import write_document
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response, json_response
from latecomer.service.http.router import Route

_PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"


def routes(context: AppContext) -> list[Route]:
    """Bind the four handlers to their operations."""

    @cache
    def make_schema() -> Response:
        return json_response(write_document(context.settings))

    async def healthz(request: Request) -> Response:
        return json_response(State("alive"))

    async def readyz(request: Request) -> Response:
        health = context.store.health
        if health.failure is not None:
            raise StoreError(f"changes are refused until the store can be written again: {health.failure}")
        context.authenticator.check()
        return json_response(Readiness("ready", health.quarantined))

    async def metrics(request: Request) -> Response:
        return Response(200, context.metrics.page(), _PROMETHEUS)

    async def schema(request: Request) -> Response:
        return await asyncio.to_thread(make_schema)  # the first time, every policy is loaded for its parameters

    return [
        Route(operations.HEALTHZ, healthz),
        Route(operations.READYZ, readyz),
        Route(operations.METRICS, metrics),
        Route(operations.SCHEMA, schema),
    ]
