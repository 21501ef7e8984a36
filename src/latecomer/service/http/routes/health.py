"""What machines ask: is it alive, is it ready, what are its numbers, what does it speak."""

import asyncio
from functools import cache
from typing import Any

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from latecomer.service.http.context import AppContext, answer, encode
from latecomer.service.http.errors import HTTPError
from latecomer.service.http.openapi import document
from latecomer.service.http.operations import Readiness, State

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def routes(reception: AppContext) -> list[HTTPRouteHandler]:
    """The four routes."""

    @cache
    def described() -> bytes:
        return encode(document(reception.settings))

    @get("/healthz")
    async def healthz() -> ASGIResponse:
        return answer(State("alive"))

    @get("/readyz")
    async def readyz() -> ASGIResponse:
        health = reception.store.health
        if health.failure is not None:
            raise HTTPError(503, f"changes are refused until the store can be written again: {health.failure}")
        reception.door.check()
        return answer(Readiness("ready", health.quarantined))

    @get("/metrics")
    async def metrics(request: Request[Any, Any, Any]) -> ASGIResponse:
        reception.door.admit(request.scope, "read")
        return ASGIResponse(body=reception.metrics.page(), headers={"content-type": _PROMETHEUS})

    @get("/schema")
    async def schema() -> ASGIResponse:
        body = await asyncio.to_thread(described)  # the first time, every policy is loaded for its parameters
        return ASGIResponse(body=body, media_type="application/json")

    return [healthz, readyz, metrics, schema]
