"""What every route needs, in one place."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from litestar.response.base import ASGIResponse
from msgspec import Struct

from latecomer.service.http.auth import Authenticator
from latecomer.service.http.bodies import JSON, BodyReader
from latecomer.service.http.errors import MALFORMED, HTTPError, invalid, malformed
from latecomer.service.http.logging_setup import Log
from latecomer.service.http.metrics import Metrics
from latecomer.service.http.settings import Settings

if TYPE_CHECKING:
    from latecomer.service.log_interface import Ticket
    from latecomer.service.store import Store

LARGE = 1 << 15
"""Bytes of a body from which others should not wait while it is decoded."""
_LISTS = 100_000
encode = msgspec.json.Encoder().encode


class AppContext(Struct, frozen=True, kw_only=True):
    """The store, and what stands between it and the network."""

    store: "Store"
    settings: Settings
    door: Authenticator
    intake: BodyReader
    metrics: Metrics
    log: Log

    async def durable(self, ticket: "Ticket") -> None:
        """Wait for a commit; where every request under way does, the commit need not wait for more of them."""
        metrics = self.metrics
        metrics.waiting += 1
        try:
            if metrics.waiting >= metrics.in_flight:
                asyncio.get_running_loop().call_soon(self._hurry)
            await self.store.wait_async(ticket)
        finally:
            metrics.waiting -= 1

    def _hurry(self) -> None:
        """Commit now if, after one more look at the network, nobody has come who could still join."""
        if self.metrics.waiting >= self.metrics.in_flight:
            self.store.flush_now()

    async def json(self, scope: Any, receive: Any, decoder: "msgspec.json.Decoder[Any]") -> Any:
        """The body, which has to be JSON of the decoder's type."""
        body, kind = await self.intake.read(scope, receive)
        if kind != JSON:
            raise HTTPError(415, "Content-Type must be application/json here")
        if len(body) > LARGE:
            return await asyncio.to_thread(decoded, body, decoder)
        return decoded(body, decoder)


def decoded(body: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """The body as the decoder's type, or a refusal that names the place."""
    if len(body) > _LISTS and body.count(b"[") > _LISTS:  # empty lists take twenty times the memory of their text
        raise invalid(f"the body must have at most {_LISTS} lists")
    try:
        return decoder.decode(body)
    except MALFORMED as error:
        raise malformed(error) from None


def answer(content: object, status: int = 200) -> ASGIResponse:
    """The content as JSON."""
    return ASGIResponse(body=encode(content), status_code=status, media_type="application/json")
