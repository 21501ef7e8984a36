"""POST /v1/bandits/{name}/imports: a batch of decisions that others made, for the bandit to learn from."""

import msgspec

from latecomer.service.http import operations
from latecomer.service.http.context import AppContext
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response, json_response
from latecomer.service.http.router import Route
from latecomer.service.messages import ImportBatch


def routes(context: AppContext) -> list[Route]:
    """Bind the handler to its operation."""
    decoder = msgspec.json.Decoder(ImportBatch)

    async def import_batch(request: Request) -> Response:
        await context.access.find(request.bandit)  # an unknown bandit is refused before the body is read
        batch = await context.body_reader.read_json(request, decoder)
        return json_response(await context.access.import_batch(request.bandit, batch))

    return [Route(operations.IMPORT, import_batch)]
