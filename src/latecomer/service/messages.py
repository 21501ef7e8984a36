"""Messages of the store and of HTTP: plain records that need nothing but msgspec."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from latecomer.errors import InputError
from latecomer.policies.base.decision import Verdict
from latecomer.service.bandit_spec import Scale
from latecomer.validation import short_repr

__all__ = [
    "BanditInfo",
    "BanditStats",
    "Conversion",
    "DecisionAnswer",
    "Health",
    "Revocation",
    "Verdict",
]

MAX_ID_LENGTH = 200
"""Characters of a request id or an action id."""


class BanditInfo(Struct, frozen=True, kw_only=True):
    """The description of a bandit: its specification, and when it was created."""

    name: str
    dim: int
    window: int | str
    policy: str
    parameters: dict[str, Any]
    created_at: datetime
    quarantined: bool = False
    """True where its rows are damaged, so that it is not served."""
    features: dict[str, Scale] = {}


class DecisionAnswer(Struct, frozen=True):
    """The answer to a request for a decision: the index of the chosen action, and its id where ids were given.

    Conversions are reported by `decision_id`. `expires_at` is when the window closes, where the window is a time.
    """

    decision_id: str
    index: int
    action_id: str | None
    round: int
    score: float
    expires_at: datetime | None


def decision_id_of(decision: DecisionAnswer | str) -> str:
    """Return the id of a decision, given as a text or as its answer."""
    found = decision.decision_id if isinstance(decision, DecisionAnswer) else decision
    if not isinstance(found, str):
        raise InputError(
            f"decision_id must be a text, as it was given, or the answer that has it; got {short_repr(found)}",
            field="decision_id",
        )
    return found


def check_request_id(request_id: object) -> str:
    """Return a request id that is a text of the right length."""
    if not isinstance(request_id, str) or not 0 < len(request_id) <= MAX_ID_LENGTH:
        raise InputError(
            f"request_id must be a text of 1 to {MAX_ID_LENGTH} characters; got {short_repr(request_id)}",
            field="request_id",
        )
    return request_id


class Conversion(Struct, frozen=True, forbid_unknown_fields=True):
    """A report of a conversion: `value` in [0, 1], and `occurred_at` where it happened before it was reported."""

    decision_id: str
    value: float = 1.0
    occurred_at: datetime | None = None


class Revocation(Struct, frozen=True, forbid_unknown_fields=True):
    """A report that takes a conversion back."""

    decision_id: str
    occurred_at: datetime | None = None


class BanditCounts(Struct, frozen=True, kw_only=True):
    """Counts of a bandit's rounds and reports.

    `conversions` and `revocations` count verdicts; `before_decision` the accepted conversions whose `occurred_at` lies
    before their decision, where the window is a time. `delay_edges` and `delay_counts` are a histogram of the delays of
    the other accepted ones, in seconds or rounds: a count for each edge (delays up to it, and above the one before),
    and one beyond; `delay_sum` is their sum. `drift` is max |V·V⁻¹ − I| at its last check.
    """

    name: str
    rounds: int
    pending: int
    conversions: dict[str, int]
    revocations: dict[str, int]
    before_decision: int
    delay_edges: list[float]
    delay_counts: list[int]
    delay_sum: float
    drift: float
    refactorisations: int


class BanditStats(BanditCounts, frozen=True, kw_only=True):
    """The counts of a bandit (see `BanditCounts`), and what its policy has learned.

    `width` is the policy's width as of the next round, `pending_width` the part due to open rounds. `delay_curve` is
    the policy's own estimate, where it makes one: pairs of an age and the share of in-window conversions that have
    arrived by then. The share of all conversions that the window keeps cannot be estimated from inside it.
    """

    theta_hat: list[float]
    width: float
    pending_width: float
    delay_curve: list[list[float]] | None


class Health(Struct, frozen=True, kw_only=True):
    """The state of a store, and its totals since it was opened.

    `failure` says why changes are refused, where they are. `clock_offset` is the store's time minus the machine's, in
    seconds. `quarantined` has the damage of quarantined bandits, by name.
    """

    failure: str | None
    snapshot_failure: str | None
    commits: int
    events: int
    bytes: int
    commit_seconds: float
    clock_offset: float
    quarantined: dict[str, str] = {}
