"""/v1/bandits: create, list, show and delete bandits."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.http import operations
from latecomer.service.http.bodies import Bandits, Freeze
from latecomer.service.http.context import AppContext
from latecomer.service.http.errors import invalid
from latecomer.service.http.query import check_query, query_param
from latecomer.service.http.report_queries import describe_service, read_decision_id, read_moment
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response, json_response
from latecomer.service.http.router import Route
from latecomer.service.messages import Verdict

if TYPE_CHECKING:
    from latecomer.service.replicated_store import ReplicatedStore
    from latecomer.service.store import Store


def routes(context: AppContext) -> list[Route]:
    """Bind the handlers to their operations."""
    store, access, limits, log = context.store, context.access, context.settings, context.log
    specs, freezes = msgspec.json.Decoder(BanditSpec), msgspec.json.Decoder(Freeze)
    creating = asyncio.Lock()

    async def create(request: Request) -> Response:
        name = request.bandit
        spec = await context.body_reader.read_json(request, specs)
        if spec.dim > limits.max_dim:
            raise invalid(f"dim must be at most {limits.max_dim} (the setting max_dim); got {spec.dim}", "dim")
        if name in _names(store):  # it need not wait for others that are being created
            info, created = await access.create(name, spec)
        else:
            async with creating:  # so that two requests do not both take the last place
                if name not in (existing := _names(store)) and len(existing) >= limits.max_bandits:
                    raise invalid(f"there may be at most {limits.max_bandits} bandits (the setting max_bandits)")
                info, created = await access.create(name, spec)
        if created:
            log.info("bandit created", bandit=name, dim=spec.dim, policy=spec.policy, key=_key_id(request))
        return json_response(info, 201 if created else 200)

    async def list_bandits(request: Request) -> Response:
        key = request.key
        infos = store.list_bandits()
        return json_response(Bandits([info for info in infos if key is None or key.allows("read", info.name)]))

    async def show(request: Request) -> Response:
        return json_response(await access.find(request.bandit))

    async def show_stats(request: Request) -> Response:
        return json_response(await access.stats(request.bandit))

    async def show_report(request: Request) -> Response:
        check_query(request, operations.GET_REPORT)
        since, until = read_moment(request, "from"), read_moment(request, "to")
        report = await access.bandit_report(request.bandit, since, until)
        return json_response(msgspec.structs.replace(report, service=await describe_service(context)))

    async def freeze(request: Request) -> Response:
        await access.find(request.bandit)  # an unknown bandit is refused before the body is read
        body = await context.body_reader.read_json(request, freezes)
        verdicts = await access.report("freeze", request.bandit, body.frozen)
        if verdicts[0] is Verdict.ACCEPTED:
            log.info("bandit frozen" if body.frozen else "bandit unfrozen", bandit=request.bandit, key=_key_id(request))
        return json_response(body)

    async def explain(request: Request) -> Response:
        return json_response(await access.explain(request.bandit, read_decision_id(request)))

    async def delete(request: Request) -> Response:
        name = request.bandit
        info = await access.describe(name)
        if query_param(request, "confirm") != name:
            raise invalid("confirm must repeat the bandit's name: all that it has learnt is deleted with it", "confirm")
        await access.delete(name)
        log.info("bandit deleted", bandit=name, key=_key_id(request))
        return json_response(info)

    return [
        Route(operations.CREATE_BANDIT, create),
        Route(operations.LIST_BANDITS, list_bandits),
        Route(operations.GET_BANDIT, show),
        Route(operations.GET_STATS, show_stats),
        Route(operations.GET_REPORT, show_report),
        Route(operations.EXPLAIN, explain),
        Route(operations.FREEZE, freeze),
        Route(operations.DELETE_BANDIT, delete),
    ]


def _names(store: "Store | ReplicatedStore") -> set[str]:
    return {info.name for info in store.list_bandits()}


def _key_id(request: Request) -> str | None:
    """Return the id of the request's key, for the log."""
    return None if request.key is None else request.key.id
