"""A decision that was asked for over HTTP: what the body says, and the future that waits for the commit."""

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.service.bandit.decision_call import DecisionCall

if TYPE_CHECKING:
    from latecomer.service.bandit.catalogue_pick import CataloguePick
    from latecomer.service.bandit.offers import Described
    from latecomer.service.messages import BanditInfo, DecisionAnswer


class ParsedDecision(Struct, frozen=True):
    """A request for a decision, whatever its format was: rows, ids where there are any, and the request's id."""

    rows: npt.NDArray[np.float64] | None
    ids: list[str] | None
    request_id: str | None
    digest: bytes | None = None
    """The digest of the features, where there are any: features that are scaled alike become the same rows."""
    described: "Described | None" = None
    """The features by name that the rows come from, where they do."""
    deferred: bool = False
    subject: str | None = None
    exclude: list[int | str] | None = None
    pin: int | str | None = None
    probabilities: bool = False
    pick: "CataloguePick | None" = None
    """In place of rows: what the decision takes from the bandit's catalogue."""
    k: int = 1
    examination: list[float] | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Store.decide`, but for the bandit's name."""
        found: dict[str, Any] = {
            "actions": self.rows,
            "ids": self.ids,
            "request_id": self.request_id,
            "body": self.digest,
            "described": self.described,
            "deferred": self.deferred,
            "subject": self.subject,
            "pick": self.pick,
        }
        if self.exclude is not None or self.pin is not None or self.probabilities:
            found |= {"exclude": self.exclude, "pin": self.pin, "probabilities": self.probabilities}
        if self.k != 1 or self.examination is not None:
            found |= {"k": self.k, "examination": self.examination}
        return found


Parsed = ParsedDecision | DecisionCall
"""A body's content: a call where nothing is left to be checked but the bandit's dimension."""


def get_arguments(decision: Parsed) -> dict[str, Any]:
    """Return the arguments of `Store.decide`, but for the bandit's name."""
    if isinstance(decision, DecisionCall):
        return {"actions": decision.actions, "ids": decision.ids}
    return decision.arguments()


class PendingDecision:
    """A decision that was asked for; `future` is resolved once it is durable.

    It gets the answer, or None where `answer` was set before.
    """

    __slots__ = ("answer", "future", "info", "is_waiting", "made_at", "source")

    def __init__(self, info: "BanditInfo", source: bytes | Parsed) -> None:
        self.info, self.source = info, source
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.is_waiting = False
        """True where it has been made, and waits for its commit."""
        self.made_at = 0
        """When it was made, in nanoseconds since 1970; 0 where that is not known."""
        self.answer: DecisionAnswer
