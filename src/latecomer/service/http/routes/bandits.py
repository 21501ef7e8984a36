"""/v1/bandits: made, looked at, deleted."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from litestar import Request, delete, get, put
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from msgspec import Struct

from latecomer.errors import UnknownBanditError
from latecomer.service.http.context import AppContext, answer
from latecomer.service.http.daemon_threads import run_in_daemon_thread
from latecomer.service.http.errors import invalid
from latecomer.service.http.keys import Key
from latecomer.service.http.query import query_param
from latecomer.service.messages import BanditInfo, BanditSpec

if TYPE_CHECKING:
    from latecomer.service.store import Store


class Bandits(Struct, frozen=True):
    """Every bandit that the key may read."""

    bandits: list[BanditInfo]


def routes(reception: AppContext) -> list[HTTPRouteHandler]:
    """The five routes, over this reception's store."""
    store, door, limits = reception.store, reception.door, reception.settings
    specs = msgspec.json.Decoder(BanditSpec)
    making = asyncio.Lock()

    @put("/v1/bandits/{name:str}")
    async def create(request: Request[Any, Any, Any]) -> ASGIResponse:
        name = request.path_params["name"]
        key = door.admit(request.scope, "admin", name)
        spec = await reception.json(request.scope, request.receive, specs)
        if spec.dim > limits.max_dim:
            raise invalid(f"dim must be at most {limits.max_dim} (the setting max_dim); got {spec.dim}", "dim")
        if name in _names(store):  # it need not wait for others that are being made
            info, created = await run_in_daemon_thread(store.create, name, spec)
        else:
            async with making:  # so that two requests do not both take the last place
                if name not in (there := _names(store)) and len(there) >= limits.max_bandits:
                    raise invalid(f"there may be at most {limits.max_bandits} bandits (the setting max_bandits)")
                info, created = await run_in_daemon_thread(
                    store.create, name, spec
                )  # it compiles, and others go on meanwhile
        if created:
            reception.log.info("bandit created", bandit=name, dim=spec.dim, policy=spec.policy, key=_id(key))
        return answer(info, 201 if created else 200)

    @get("/v1/bandits")
    async def every(request: Request[Any, Any, Any]) -> ASGIResponse:
        key = door.admit(request.scope, "read", None)
        infos = store.list_bandits()
        return answer(Bandits([info for info in infos if key is None or key.allows("read", info.name)]))

    @get("/v1/bandits/{name:str}")
    async def one(request: Request[Any, Any, Any]) -> ASGIResponse:
        name = request.path_params["name"]
        door.admit(request.scope, "read", name)
        return answer(store.info(name))

    @get("/v1/bandits/{name:str}/stats")
    async def stats(request: Request[Any, Any, Any]) -> ASGIResponse:
        name = request.path_params["name"]
        door.admit(request.scope, "read", name)
        return answer(store.stats(name))

    @delete("/v1/bandits/{name:str}", status_code=200)
    async def remove(request: Request[Any, Any, Any]) -> ASGIResponse:
        name = request.path_params["name"]
        key = door.admit(request.scope, "admin", name)
        try:
            info = store.describe(name)
        except UnknownBanditError:
            await store.wait_async(store.registry_ticket)  # whom somebody deleted a moment ago may not be gone for good
            raise
        if query_param(request.scope, "confirm") != name:
            raise invalid("confirm must repeat the bandit's name: all that it has learnt is deleted with it", "confirm")
        await asyncio.to_thread(store.delete, name)
        reception.log.info("bandit deleted", bandit=name, key=_id(key))
        return answer(info)

    return [create, every, one, stats, remove]


def _names(store: "Store") -> set[str]:
    return {info.name for info in store.list_bandits()}


def _id(key: Key | None) -> str | None:
    """Whose doing it is, for the log."""
    return None if key is None else key.id
