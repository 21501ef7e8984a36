"""Messages that report what became of decisions: conversions, revocations, stages and activations."""

from datetime import datetime

from msgspec import Struct


class Conversion(Struct, frozen=True, forbid_unknown_fields=True):
    """A report of a conversion, with `occurred_at` where it happened before it was reported.

    `value` is in [0, 1], and 1 where it is null; where the bandit's reward has a scale it is an amount, and not null.
    It must have occurred inside its decision's window, and be reported inside the window and the grace. It names its
    decision, or the `subject` of some. `conversion_id` is its own id: the same counts once, and others of the decision
    may count too.
    """

    decision_id: str | None = None
    value: float | None = None
    occurred_at: datetime | None = None
    subject: str | None = None
    conversion_id: str | None = None


class Revocation(Struct, frozen=True, forbid_unknown_fields=True):
    """A report that takes a conversion back: all of a decision, or the one of a `conversion_id`.

    Without a decision, that one is taken back wherever it was credited.
    """

    decision_id: str | None = None
    occurred_at: datetime | None = None
    conversion_id: str | None = None


class Correction(Struct, frozen=True, forbid_unknown_fields=True):
    """A report that replaces all that a decision is credited with by one `value`: in [0, 1], or an amount."""

    decision_id: str
    value: float
    occurred_at: datetime | None = None


class StageReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A report that a decision has reached a stage before any conversion, such as a click or a cart."""

    decision_id: str
    stage: str
    occurred_at: datetime | None = None


class StageCounts(Struct, frozen=True):
    """Decisions that have reached a stage, and how many of them converted.

    `surrogate` is what an open decision that reaches it now is credited with until its conversion is known, in [0, 1];
    null where the policy does not learn from the stage.
    """

    decisions: int
    conversions: int
    surrogate: float | None = None


class Activation(Struct, frozen=True, forbid_unknown_fields=True):
    """A report that a deferred decision was shown: it counts from now on."""

    decision_id: str
