"""POST /v1/bandits/{name}/conversions, …/revocations, …/corrections, …: one report or a list; a verdict for each."""

from typing import Any

import msgspec
from msgspec import UNSET

from latecomer.errors import InputError
from latecomer.service.http import operations
from latecomer.service.http.bodies import Activations, Conversions, Corrections, Revocations, StageReports, Verdicts
from latecomer.service.http.context import AppContext
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response, json_response
from latecomer.service.http.router import Handler, Route
from latecomer.service.http.store_access import ReportKind


def routes(context: AppContext) -> list[Route]:
    """Bind the handlers to their operations."""
    return [
        Route(operations.CONVERT, _handler(context, msgspec.json.Decoder(Conversions), "convert")),
        Route(operations.REVOKE, _handler(context, msgspec.json.Decoder(Revocations), "revoke")),
        Route(operations.CORRECT, _handler(context, msgspec.json.Decoder(Corrections), "correct")),
        Route(operations.STAGE, _handler(context, msgspec.json.Decoder(StageReports), "report_stages")),
        Route(operations.ACTIVATE, _handler(context, msgspec.json.Decoder(Activations), "activate")),
    ]


def _handler(context: AppContext, decoder: "msgspec.json.Decoder[Any]", kind: ReportKind) -> Handler:
    access = context.access

    async def handle(request: Request) -> Response:
        await access.find(request.bandit)  # an unknown bandit is refused before the body is read
        body = await context.body_reader.read_json(request, decoder)
        try:
            verdicts = await access.report(kind, request.bandit, body if isinstance(body, list) else [body])
        except InputError as error:
            if not isinstance(body, list) and error.field is not None:
                error.field = error.field.removeprefix("[0].")
            raise
        return json_response(Verdicts(verdicts, verdicts.warnings or UNSET, verdicts.attributed or UNSET))

    return handle
