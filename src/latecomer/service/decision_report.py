"""The report of one decision: what was chosen, what became of it, and why it was this one."""

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

__all__ = ["ActionReport", "ContributionReport", "DecisionExplanation", "DecisionReport"]

Fate = Literal["converted", "revoked", "open", "closed"]
"""`open`: it may still convert. `closed`: its window has closed without a conversion."""


class DecisionReport(Struct, frozen=True, kw_only=True):
    """One decision as the log has it, and its fate. `decision_id` is empty where the log no longer has its secret."""

    decision_id: str
    round: int
    decided_at: datetime
    index: int
    action_id: str | None
    score: float
    propensity: float | None
    is_control: bool
    fate: Fate
    value: float | None = None
    converted_at: datetime | None = None


class ActionReport(Struct, frozen=True, kw_only=True):
    """One action of the offer, judged by the policy as it is now.

    `estimate` is θ̂·x, `score` what the next decision would compare, `propensity` by which probability it would choose
    the action.
    """

    index: int
    action_id: str | None
    is_chosen: bool
    estimate: float
    score: float
    propensity: float | None
    features: dict[str, Any] | None = None


class ContributionReport(Struct, frozen=True, kw_only=True):
    """A feature's part in the estimate of the chosen action: the estimate with it, less that without it.

    `side` is context, action, or column where the decision was made on rows of numbers.
    """

    side: Literal["context", "action", "column"]
    feature: str
    value: str
    contribution: float


class DecisionExplanation(Struct, frozen=True, kw_only=True):
    """A decision, the actions it was made among, and the features that made the chosen one's estimate.

    `actions` is empty where the offer was not logged. Estimates are of today: the policy has learnt since.
    """

    decision: DecisionReport
    context: dict[str, Any] | None
    actions: list[ActionReport]
    contributions: list[ContributionReport]
    note: str
