"""The types of bodies that only the HTTP API has; `service/messages.py` has those that the store shares."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from latecomer.service.bandit.decision_call import MAX_RANKED
from latecomer.service.bandit.verdict_list import Attributed, ReportWarning
from latecomer.service.decision_batch import MAX_DECISIONS
from latecomer.service.http.errors import Problem
from latecomer.service.messages import (
    MAX_ID_LENGTH,
    Activation,
    BanditInfo,
    Conversion,
    Correction,
    DecisionAnswer,
    Revocation,
    StageReport,
    Verdict,
)

MAX_REPORTS = 10_000
"""Conversions or revocations in one request."""

_EACH = "Requests like the other form; one that is not gets an error of its own in the answer."

Label = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
Index = Annotated[int, Meta(ge=0, le=1 << 40)]
Features = dict[str, float | bool | str | list[str] | None]
Conversions = Conversion | Annotated[list[Conversion], Meta(min_length=1, max_length=MAX_REPORTS)]
Revocations = Revocation | Annotated[list[Revocation], Meta(min_length=1, max_length=MAX_REPORTS)]
Corrections = Correction | Annotated[list[Correction], Meta(min_length=1, max_length=MAX_REPORTS)]
StageReports = StageReport | Annotated[list[StageReport], Meta(min_length=1, max_length=MAX_REPORTS)]
Activations = Activation | Annotated[list[Activation], Meta(min_length=1, max_length=MAX_REPORTS)]


class DescribedAction(Struct, frozen=True, forbid_unknown_fields=True):
    """An action by its features, names and values, to be hashed into the bandit's dimension."""

    id: Label
    features: Features


class DecisionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The actions to choose from: rows of numbers, or described by features together with those of the context.

    Their ids, `ids` of rows, must be different.

    Without `actions`, those of the bandit's catalogue: all, or the `candidates`. A decision that is `deferred` counts
    only once it is activated. With `k` above 1 the answer has that many actions, ranked; `examination` says how likely
    each position is looked at. `subject` is the user that it is for. Actions in `exclude` are not chosen, and the one
    of `pin` is; both take indices, or ids, of which a catalogue has ids alone.
    """

    actions: list[list[float] | DescribedAction] | None = None
    ids: list[Label] | None = None
    request_id: Label | None = None
    context: Features | None = None
    deferred: bool = False
    subject: Label | None = None
    exclude: list[Index | Label] | None = None
    pin: Index | Label | None = None
    candidates: list[Label] | None = None
    search: Literal["exact", "approximate"] = "exact"
    k: Annotated[int, Meta(ge=1, le=MAX_RANKED)] = 1
    examination: Annotated[list[float], Meta(max_length=MAX_RANKED)] | None = None


class CatalogueAction(Struct, frozen=True, forbid_unknown_fields=True):
    """An action of a catalogue: a `vector` of norm at most 1, or `features` for the bandit's encoder."""

    id: Label
    vector: list[float] | None = None
    features: Features | None = None


class CatalogueRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Actions to add to a catalogue or to change, and ids to withdraw; with `replace`, all others are withdrawn."""

    actions: Annotated[list[CatalogueAction], Meta(max_length=MAX_REPORTS)] = []
    withdraw: Annotated[list[Label], Meta(max_length=MAX_REPORTS)] = []
    replace: bool = False


Decisions = DecisionRequest | Annotated[list[Any], Meta(min_length=1, max_length=MAX_DECISIONS, description=_EACH)]
"""One request, or a list of them."""


class DecisionOutcome(Struct, frozen=True):
    """The outcome of one request of a batch: its decision, or its error."""

    decision: DecisionAnswer | UnsetType = UNSET
    error: Problem | UnsetType = UNSET


class Verdicts(Struct, frozen=True):
    """A verdict for each, and warnings about some that were accepted; left out where there are none.

    `attributed` has the decisions of conversions that named a subject.
    """

    verdicts: list[Verdict]
    warnings: list[ReportWarning] | UnsetType = UNSET
    attributed: list[Attributed] | UnsetType = UNSET


class Freeze(Struct, frozen=True, forbid_unknown_fields=True):
    """True where the bandit decides without learning."""

    frozen: bool


class Bandits(Struct, frozen=True):
    """Every bandit that the key may read."""

    bandits: list[BanditInfo]


class State(Struct, frozen=True):
    """The health of the server."""

    status: str


class Readiness(Struct, frozen=True, omit_defaults=True):
    """Readiness: changes can be made durable. Bandits that are not served are named, with their damage."""

    status: str
    quarantined: dict[str, str] = {}
