"""What goes in and out of a policy: plain, frozen records."""

import numpy as np
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.policies.base.verdict import Verdict

__all__ = ["VERDICTS", "Decision", "Verdict", "round_of"]

VERDICTS = (Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.LATE, Verdict.UNKNOWN)
"""By the kernels' numbers."""


class Decision(Struct, frozen=True, eq=False):
    """A choice. Keep `round`: it is what a conversion refers to."""

    round: int
    index: int
    action: Array
    score: float


NO_ROUND = 2**62
"""Beyond what kernels count in."""
_MISSING = ("nan", "<NA>", "None")


def round_of(decision: Decision | float) -> int:
    """The round that a conversion refers to; 0, which is no round, for what cannot be one."""
    if type(decision) is Decision:
        return decision.round
    if isinstance(decision, float | np.floating) and float(decision).is_integer():  # a column with missing values
        decision = int(decision)
    if isinstance(decision, bool) or not isinstance(decision, (int, np.integer)):
        remedy = ": leave out rows without a decision" if str(decision) in _MISSING else ""
        raise InputError(f"decision must be a Decision or its round, a whole number; got {decision!r}{remedy}")
    return int(decision) if 0 < decision < NO_ROUND else 0
