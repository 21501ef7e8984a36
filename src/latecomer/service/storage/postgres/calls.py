"""Calls on a bandit that wait for a commit: each is run on the whole state, and answered once it is durable."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.catalogue_call import CatalogueCall
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.bandit.imports import ImportCall
from latecomer.service.bandit.verdict_list import VerdictList


class Work(Protocol):
    """The part of a call that changes a bandit."""

    request: bytes
    """The digest of its request id, which the log gets; empty where it has none."""
    lookup: bytes
    """The digest that is looked for in the log before: of a deferred decision too."""

    def run(self, bandit: Bandit, now: int, shift: int) -> tuple[Any, bytes, int]:
        """Change the bandit; return the answer, the events for the log, and how many they are.

        `now` is the store's time, which is `shift` microseconds ahead of the calendar.
        """


class Repeatable:
    """A call that the log may have answered before: a decision, a batch of an import, a change of a catalogue."""

    __slots__ = ("call", "lookup", "request")

    def __init__(self, call: DecisionCall | ImportCall | CatalogueCall) -> None:
        self.call, self.request, self.lookup = call, call.request, call.lookup

    def run(self, bandit: Bandit, now: int, shift: int) -> tuple[Any, bytes, int]:
        """Run it on the bandit."""
        return self.call.run(bandit, now=now, shift=shift)

    def repeat(self, bandit: Bandit, known: LoggedDecision, shift: int) -> Any:
        """Return the answer that the log has."""
        return self.call.repeat(bandit, known, shift=shift)


class Report:
    """A report of conversions, revocations or activations, or a freeze."""

    __slots__ = ("_apply", "_reports", "lookup", "request")

    def __init__(self, apply: Callable[..., tuple[VerdictList, bytes]], reports: Any) -> None:
        self._apply, self._reports, self.request, self.lookup = apply, reports, b"", b""

    def run(self, bandit: Bandit, now: int, shift: int) -> tuple[Any, bytes, int]:
        """Apply the reports in their order."""
        verdicts, data = self._apply(bandit, self._reports, now=now, shift=shift)
        return verdicts, data, len(verdicts)


class PendingCall:
    """A call in the queue of a chain, and the future that gets its answer or its error."""

    __slots__ = ("answer", "future", "submitted", "work")

    def __init__(self, work: Work, future: "asyncio.Future[Any]", submitted: float) -> None:
        self.work, self.future, self.submitted = work, future, submitted
        self.answer: Any = None

    def resolve(self) -> None:
        """Give the answer out: it is durable."""
        if not self.future.done():
            self.future.set_result(self.answer)

    def fail(self, error: BaseException) -> None:
        """Give an error out."""
        if not self.future.done():
            self.future.set_exception(error)
