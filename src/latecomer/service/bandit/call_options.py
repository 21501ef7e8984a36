"""The optional arguments of a decision, as every store takes them."""

from collections.abc import Sequence
from typing import TypedDict

from latecomer.service.bandit.catalogue_pick import CataloguePick
from latecomer.service.bandit.offers import Described
from latecomer.service.bandit.selection import Choice


class CallOptions(TypedDict, total=False):
    """The optional arguments of a decision, as `check_decision_call` takes them."""

    request_id: str | None
    body: bytes | None
    described: Described | None
    deferred: bool
    subject: str | None
    exclude: Sequence[Choice] | None
    pin: Choice | None
    probabilities: bool
    pick: CataloguePick | None
    k: int
    examination: Sequence[float] | None
