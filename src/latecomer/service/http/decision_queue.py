"""Decisions in groups: those that are asked for in one turn of the loop are parsed, and then made, one after the other.

Decided one at a time, between sockets and tasks, a decision takes twice as long as in a loop of its own: the code of a
whole request does not fit the processor's caches.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.service.http.context import AppContext
from latecomer.service.log_interface import Ticket

if TYPE_CHECKING:
    from latecomer.service.messages import BanditInfo, DecisionAnswer


class ParsedDecision(Struct, frozen=True):
    """A request for a decision, whatever its format was: rows, ids where there are any, and the request's id."""

    rows: npt.NDArray[np.float64]
    ids: list[str] | None
    request_id: str | None
    digest: bytes | None = None
    """The digest of the features, where there are any: features that are scaled alike become the same rows."""


class PendingDecision:
    """A decision that was asked for; `future` is resolved once it is durable, and `answer` is set by then."""

    __slots__ = ("answer", "future", "info", "is_waiting", "source")

    def __init__(self, info: "BanditInfo", source: bytes | ParsedDecision) -> None:
        self.info, self.source = info, source
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_waiting = False
        """True where it has been made, and waits for its commit."""
        self.answer: DecisionAnswer


class DecisionQueue:
    """The decisions of one server that wait for the next turn of the loop.

    Parameters
    ----------
    context
        The server's store and metrics.
    parse
        Parses a body that is small enough to be parsed on the loop.
    """

    def __init__(self, context: AppContext, parse: Callable[[bytes, "BanditInfo"], ParsedDecision]) -> None:
        self._context, self._parse = context, parse
        self._pending: list[PendingDecision] = []

    async def decide(self, info: "BanditInfo", source: bytes | ParsedDecision) -> "DecisionAnswer":
        """Return the decision for a body, or for what was parsed elsewhere, once it is durable."""
        pending = PendingDecision(info, source)
        if not self._pending:
            pending.future.get_loop().call_soon(self._decide_all)
        self._pending.append(pending)
        try:
            await pending.future
        finally:
            self._context.metrics.waiting -= pending.is_waiting
        return pending.answer

    def _decide_all(self) -> None:
        every, self._pending = self._pending, []
        parsed = [(pending, decision) for pending in every if (decision := self._parse_one(pending)) is not None]
        waiting: dict[Ticket, list[PendingDecision]] = {}
        with self._context.store.group():
            for pending, decision in parsed:
                ticket = self._decide_one(pending, decision)
                if ticket is not None:
                    waiting.setdefault(ticket, []).append(pending)
        for ticket, group in waiting.items():
            for pending in group:
                pending.is_waiting = True
            self._context.resolve_when_durable(ticket, [pending.future for pending in group])

    def _parse_one(self, pending: PendingDecision) -> ParsedDecision | None:
        if pending.future.done():  # the server stops
            return None
        source = pending.source
        if not isinstance(source, bytes):
            return source
        try:
            return self._parse(source, pending.info)
        except Exception as error:  # noqa: BLE001 - every error is the answer to its own request
            pending.future.set_exception(error)
            return None

    def _decide_one(self, pending: PendingDecision, decision: ParsedDecision) -> Ticket | None:
        try:
            pending.answer, ticket = self._context.store.decide(
                pending.info.name, decision.rows, decision.ids, request_id=decision.request_id, body=decision.digest
            )
        except Exception as error:  # noqa: BLE001
            pending.future.set_exception(error)
            return None
        return ticket
