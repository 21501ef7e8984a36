"""The class that target policies share."""

from abc import ABC, abstractmethod

import numpy as np

from latecomer.evaluation.batch import LogBatch
from latecomer.evaluation.plan import Plan


class Target(ABC):
    """A policy whose value is to be estimated from the log of another."""

    columns: tuple[str, ...] = ()
    """Columns of the source that it reads, besides the log's own."""
    since: float = -np.inf
    """The time from which on it is judged: it may have learnt from what was before."""

    is_logged: bool = False
    """True for the policy that made the log."""

    @abstractmethod
    def plan(self, batch: LogBatch) -> Plan | None:
        """Return the plan for some rounds; None for the policy that made the log."""
