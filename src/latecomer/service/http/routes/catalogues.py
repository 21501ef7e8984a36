"""/v1/bandits/{name}/actions: put actions into a bandit's catalogue, and show what it is."""

import msgspec

from latecomer.service.http import operations
from latecomer.service.http.bodies import CatalogueAction, CatalogueRequest, Features
from latecomer.service.http.context import AppContext
from latecomer.service.http.errors import invalid
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response, json_response
from latecomer.service.http.router import Route


def routes(context: AppContext) -> list[Route]:
    """Bind the handlers to their operations."""
    access, decoder = context.access, msgspec.json.Decoder(CatalogueRequest)

    async def put(request: Request) -> Response:
        await access.find(request.bandit)  # an unknown bandit is refused before the body is read
        body = await context.body_reader.read_json(request, decoder)
        actions = {action.id: _read_action(action, place) for place, action in enumerate(body.actions)}
        if len(actions) != len(body.actions):
            ids = [action.id for action in body.actions]
            place = next(place for place, id_ in enumerate(ids) if id_ in ids[:place])
            raise invalid("actions must have different ids", f"actions[{place}].id")
        return json_response(await access.put_actions(request.bandit, actions, body.withdraw, replace=body.replace))

    async def show(request: Request) -> Response:
        return json_response(await access.catalogue(request.bandit))

    return [Route(operations.PUT_ACTIONS, put), Route(operations.GET_ACTIONS, show)]


def _read_action(action: CatalogueAction, place: int) -> list[float] | Features:
    if (action.vector is None) == (action.features is None):
        raise invalid("an action must have a vector or features, and not both", f"actions[{place}]")
    return action.vector if action.features is None else action.features  # type: ignore[return-value]
