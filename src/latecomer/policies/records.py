"""What goes in and out of a policy: plain, frozen records."""

import numpy as np
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.policies.verdict import Verdict

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


def round_of(decision: Decision | int) -> int:
    """The round that a conversion refers to; 0, which is no round, for what cannot be one."""
    if type(decision) is Decision:
        return decision.round
    if isinstance(decision, bool) or not isinstance(decision, (int, np.integer)):
        raise InputError(f"decision must be a Decision or its round, a whole number; got {decision!r}")
    return int(decision) if 0 < decision < NO_ROUND else 0
