"""What goes in and out of a policy: plain, frozen records."""

from enum import StrEnum

from msgspec import Struct

from latecomer.core.state import Array


class Verdict(StrEnum):
    """What became of a conversion. Only an accepted one changes anything."""

    ACCEPTED = "accepted"
    """It was credited to its decision."""
    DUPLICATE = "duplicate"
    """Its decision has converted already (or its conversion was revoked)."""
    LATE = "late"
    """Its decision's window has closed."""
    UNKNOWN = "unknown"
    """No such decision was made here; or, to a revocation, there is no conversion to take back."""


class Decision(Struct, frozen=True, eq=False):
    """A choice. Keep `round`: it is what a conversion refers to."""

    round: int
    index: int
    action: Array
    score: float
