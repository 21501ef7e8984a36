"""POST /v1/bandits/{name}/conversions and …/revocations: one, or a list; a verdict for each, in their order."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from latecomer.service.http.direct import Respond
from latecomer.service.http.reception import Reception, encode
from latecomer.service.messages import Conversion, Revocation, Verdict

MOST = 10_000
"""Conversions in one request."""

Conversions = Conversion | Annotated[list[Conversion], Meta(min_length=1, max_length=MOST)]
Revocations = Revocation | Annotated[list[Revocation], Meta(min_length=1, max_length=MOST)]


class Verdicts(Struct, frozen=True):
    """What became of each."""

    verdicts: list[Verdict]


def responders(reception: Reception) -> dict[str, Respond]:
    """Both of them, over this reception's desk."""
    desk, door = reception.desk, reception.door
    conversions: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Conversions)
    revocations: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Revocations)

    async def convert(scope: Any, receive: Any, name: str) -> tuple[int, bytes]:
        door.admit(scope, "convert", name)
        desk.info(name)
        told = await reception.json(scope, receive, conversions)
        verdicts, ticket = desk.convert(name, told if isinstance(told, list) else [told])
        await reception.durable(ticket)
        return 200, encode(Verdicts(verdicts))

    async def revoke(scope: Any, receive: Any, name: str) -> tuple[int, bytes]:
        door.admit(scope, "convert", name)
        desk.info(name)
        told = await reception.json(scope, receive, revocations)
        verdicts, ticket = desk.revoke(name, told if isinstance(told, list) else [told])
        await reception.durable(ticket)
        return 200, encode(Verdicts(verdicts))

    return {"conversions": convert, "revocations": revoke}
