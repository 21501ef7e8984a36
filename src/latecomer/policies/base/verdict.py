"""What becomes of a conversion; a module of its own, for those who need the words and no arrays."""

from enum import StrEnum


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
