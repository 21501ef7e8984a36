"""POST /v1/bandits/{name}/conversions and …/revocations: one, or a list; a verdict for each, in their order."""

from typing import Annotated, Any

import msgspec
from litestar import Request, post
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from msgspec import Meta, Struct

from latecomer.service.http.reception import Reception, answer
from latecomer.service.messages import Conversion, Revocation, Verdict

MOST = 10_000
"""Conversions in one request."""

Conversions = Conversion | Annotated[list[Conversion], Meta(min_length=1, max_length=MOST)]
Revocations = Revocation | Annotated[list[Revocation], Meta(min_length=1, max_length=MOST)]


class Verdicts(Struct, frozen=True):
    """What became of each."""

    verdicts: list[Verdict]


def routes(reception: Reception) -> list[HTTPRouteHandler]:
    """Both routes, over this reception's desk."""
    desk, door = reception.desk, reception.door
    conversions: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Conversions)
    revocations: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Revocations)

    @post("/v1/bandits/{name:str}/conversions")
    async def convert(request: Request[Any, Any, Any], name: str) -> ASGIResponse:
        door.admit(request.scope, "convert", name)
        desk.info(name)
        told = await reception.json(request, conversions)
        verdicts, ticket = desk.convert(name, told if isinstance(told, list) else [told])
        await reception.durable(ticket)
        return answer(Verdicts(verdicts))

    @post("/v1/bandits/{name:str}/revocations")
    async def revoke(request: Request[Any, Any, Any], name: str) -> ASGIResponse:
        door.admit(request.scope, "convert", name)
        desk.info(name)
        told = await reception.json(request, revocations)
        verdicts, ticket = desk.revoke(name, told if isinstance(told, list) else [told])
        await reception.durable(ticket)
        return answer(Verdicts(verdicts))

    return [convert, revoke]
