"""Decisions and verdicts: plain, frozen records."""

from enum import StrEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from latecomer.core.state import Array
from latecomer.errors import InputError


class Verdict(StrEnum):
    """The outcome of a conversion or a revocation. Only an accepted one changes anything."""

    ACCEPTED = "accepted"
    """It was credited to its decision."""
    DUPLICATE = "duplicate"
    """Its decision has converted already (or its conversion was revoked)."""
    LATE = "late"
    """Its decision's window has closed."""
    UNKNOWN = "unknown"
    """No such decision was made here; or, to a revocation, there is no conversion to revoke."""


VERDICTS = (Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.LATE, Verdict.UNKNOWN)
"""By the numbers that kernels return."""


class Decision(Struct, frozen=True, eq=False):
    """A choice. Keep `round`: a conversion refers to it. That of a deferred decision is negative.

    The chosen row is kept as bytes until it is asked for: to make an array of it takes as long as to choose it.
    """

    round: int
    index: int
    _action: Array | bytes
    score: float
    propensity: float | None = None
    """The probability by which it was chosen; None where a sampler does not know it (`draws` makes it known)."""
    is_control: bool = False
    """True where the control chose it."""
    indices: tuple[int, ...] | None = None
    """With k > 1: the ranked actions; the others' rounds follow `round`, and `convert` takes their `position`."""
    propensities: tuple[float | None, ...] | None = None
    """With k > 1: the probability of each to be among the k; `propensity` is that of the first to be first."""

    @property
    def action(self) -> Array:
        """The chosen action."""
        found = self._action
        if isinstance(found, bytes):
            found = np.frombuffer(found, np.float64).copy()
            force_setattr(self, "_action", found)
        return found

    @property
    def packed_action(self) -> bytes:
        """The chosen action as the bytes of its numbers."""
        return self._action if isinstance(self._action, bytes) else self._action.tobytes()

    def __repr__(self) -> str:
        """Return the call that would make it, but for the array."""
        names = [name.lstrip("_") for name in self.__struct_fields__]
        return f"Decision({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def find_round(self, position: int) -> int:
        """Return the round of a position of the ranking, from 1."""
        count = 1 if self.indices is None else len(self.indices)
        if isinstance(position, bool) or not isinstance(position, int) or not 1 <= position <= count:
            raise InputError(
                f"position must be 1 to {count}, the number of actions chosen; got {position!r}", field="position"
            )
        return self.round + position - 1


NO_ROUND = 2**62
"""Larger than any round."""
_MISSING = ("nan", "<NA>", "None")


def round_of(decision: Decision | float) -> int:
    """Return the round that a conversion refers to; 0, which is no round, for a number that cannot be one."""
    if type(decision) is Decision:
        return decision.round
    if isinstance(decision, float | np.floating) and float(decision).is_integer():  # a column with missing values
        decision = int(decision)
    if isinstance(decision, bool) or not isinstance(decision, (int, np.integer)):
        remedy = ": leave out rows without a decision" if str(decision) in _MISSING else ""
        raise InputError(
            f"decision must be a Decision or its round, a whole number; got {decision!r}{remedy}", field="decision"
        )
    return int(decision) if -NO_ROUND < decision < NO_ROUND else 0
