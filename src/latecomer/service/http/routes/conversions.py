"""POST /v1/bandits/{name}/conversions and …/revocations: one or a list; a verdict for each, in their order."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from latecomer.errors import InputError
from latecomer.service.http import operations
from latecomer.service.http.bodies import Conversions, Revocations, Verdicts
from latecomer.service.http.context import AppContext
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response, json_response
from latecomer.service.http.router import Handler, Route


def routes(context: AppContext) -> list[Route]:
    """Bind the two handlers to their operations."""
    store = context.store
    return [
        Route(operations.CONVERT, _handler(context, msgspec.json.Decoder(Conversions), store.convert)),
        Route(operations.REVOKE, _handler(context, msgspec.json.Decoder(Revocations), store.revoke)),
    ]


def _handler(context: AppContext, decoder: "msgspec.json.Decoder[Any]", report: Callable[..., Any]) -> Handler:
    async def handle(request: Request) -> Response:
        context.store.info(request.bandit)  # an unknown bandit is refused before the body is read
        body = await context.body_reader.read_json(request, decoder)
        try:
            verdicts, ticket = report(request.bandit, body if isinstance(body, list) else [body])
        except InputError as error:
            if not isinstance(body, list) and error.field is not None:
                error.field = error.field.removeprefix("[0].")
            raise
        await context.wait_durable(ticket)
        return json_response(Verdicts(verdicts, verdicts.warnings or UNSET))

    return handle
