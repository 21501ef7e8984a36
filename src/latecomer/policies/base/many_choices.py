"""The choices of many decisions that one call of a kernel makes, in columns."""

from typing import NamedTuple, Self

import numpy as np

from latecomer.core.action_summary import Shorts
from latecomer.core.state import Array, Integers


class ManyChoices(NamedTuple):
    """A row for each decision."""

    indices: Integers
    scores: Array
    signed: Array
    """Propensities, negative where the control chose, NaN where they are unknown."""
    summaries: Shorts
    """The summaries of the action sets; no rows where nobody has asked for them."""

    @classmethod
    def make_room(cls, count: int, dim: int, *, summarises: bool) -> Self:
        """Make columns for a kernel to fill in."""
        summaries = np.empty((count if summarises else 0, dim + 2), np.int16)
        return cls(np.empty(count, np.int64), np.empty(count), np.empty(count), summaries)
