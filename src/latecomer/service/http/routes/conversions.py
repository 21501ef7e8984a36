"""POST /v1/bandits/{name}/conversions and …/revocations: one, or a list; a verdict for each, in their order."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from latecomer.errors import InputError
from latecomer.service.bandit.verdicts import ReportWarning
from latecomer.service.http.context import AppContext, encode
from latecomer.service.http.errors import place_in_list
from latecomer.service.http.router import Respond
from latecomer.service.messages import Conversion, Revocation, Verdict

MOST = 10_000
"""Conversions in one request."""

Conversions = Conversion | Annotated[list[Conversion], Meta(min_length=1, max_length=MOST)]
Revocations = Revocation | Annotated[list[Revocation], Meta(min_length=1, max_length=MOST)]


class Verdicts(Struct, frozen=True):
    """A verdict for each, and warnings about some that were accepted; left out where there are none."""

    verdicts: list[Verdict]
    warnings: list[ReportWarning] | UnsetType = UNSET


def responders(reception: AppContext) -> dict[str, Respond]:
    """Both of them, over this reception's store."""
    store = reception.store
    return {
        "conversions": _responder(reception, msgspec.json.Decoder(Conversions), store.convert),
        "revocations": _responder(reception, msgspec.json.Decoder(Revocations), store.revoke),
    }


def _responder(reception: AppContext, decoder: "msgspec.json.Decoder[Any]", report: Callable[..., Any]) -> Respond:
    async def respond(scope: Any, receive: Any, name: str) -> tuple[int, bytes]:
        reception.door.admit(scope, "convert", name)
        reception.store.info(name)
        told = await reception.json(scope, receive, decoder)
        try:
            verdicts, ticket = report(name, told if isinstance(told, list) else [told])
        except InputError as error:
            raise place_in_list(error) if isinstance(told, list) else error from None
        await reception.durable(ticket)
        return 200, encode(Verdicts(verdicts, verdicts.warnings or UNSET))

    return respond
