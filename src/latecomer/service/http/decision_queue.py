"""Decisions in groups: those that are asked for in one turn of the loop are parsed, and then made, one after the other.

Decided one at a time, between sockets and tasks, a decision takes twice as long as in a loop of its own: the code of a
whole request does not fit the processor's caches.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from latecomer.service.http.context import AppContext
from latecomer.service.http.pending_decision import Parsed, PendingDecision

if TYPE_CHECKING:
    from latecomer.service.messages import BanditInfo, DecisionAnswer


class DecisionQueue:
    """The decisions of one server that wait for the next turn of the loop.

    Parameters
    ----------
    context
        The server's store and metrics.
    parse
        Parses a body that is small enough to be parsed on the loop.
    """

    def __init__(self, context: AppContext, parse: Callable[[bytes, "BanditInfo"], Parsed]) -> None:
        self._context, self._parse, self._tracing = context, parse, context.tracing
        self._pending: list[PendingDecision] = []

    async def decide(self, info: "BanditInfo", source: bytes | Parsed) -> "DecisionAnswer":
        """Return the decision for a body, or for what was parsed elsewhere, once it is durable."""
        pending = PendingDecision(info, source)
        if self._tracing is not None:
            self._tracing.follow(pending)
        if not self._pending:
            pending.future.get_loop().call_soon(self._decide_all)
        self._pending.append(pending)
        try:
            answer: DecisionAnswer | None = await pending.future
        finally:
            self._context.metrics.waiting -= pending.is_waiting
        return pending.answer if answer is None else answer

    def _decide_all(self) -> None:
        every, self._pending = self._pending, []
        parsed = [(pending, decision) for pending in every if (decision := self._parse_one(pending)) is not None]
        self._context.access.decide_all(parsed)

    def _parse_one(self, pending: PendingDecision) -> Parsed | None:
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
