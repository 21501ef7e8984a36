"""The parts of a server that its routes share."""

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from latecomer.service.http.auth import Authenticator
from latecomer.service.http.body_reader import BodyReader
from latecomer.service.http.logging_setup import Log
from latecomer.service.http.metrics import Metrics
from latecomer.service.http.settings import Settings

if TYPE_CHECKING:
    from latecomer.service.log_interface import Ticket
    from latecomer.service.store import Store


class AppContext(Struct, frozen=True, kw_only=True):
    """The store, and the parts of the server that routes use."""

    store: "Store"
    settings: Settings
    authenticator: Authenticator
    body_reader: BodyReader
    metrics: Metrics
    log: Log

    async def wait_durable(self, ticket: "Ticket") -> None:
        """Wait for a commit."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.resolve_when_durable(ticket, [future])
        try:
            await future
        finally:
            self.metrics.waiting -= 1

    def resolve_when_durable(self, ticket: "Ticket", futures: "list[asyncio.Future[None]]") -> None:
        """Have futures of requests resolved by a commit; the caller takes each off `metrics.waiting` after that.

        Where every request in flight waits for a commit, the commit need not wait for more.
        """
        metrics = self.metrics
        metrics.waiting += len(futures)
        if metrics.waiting >= metrics.in_flight:
            asyncio.get_running_loop().call_soon(self._flush)
        self.store.resolve_when_done(ticket, futures)

    def _flush(self) -> None:
        """Commit now if, after one more turn of the loop, no request has come that could still join."""
        if self.metrics.waiting >= self.metrics.in_flight:
            self.store.flush_now()
