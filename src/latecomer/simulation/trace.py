"""Traces: what is kept of each run, for every policy."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array

Bits = npt.NDArray[np.uint8]
"""Eight rounds a byte."""


@dataclass(frozen=True, eq=False)
class Trace:
    """One policy's rounds, in one run or in several."""

    regret: Array
    """(…, horizon), cumulative pseudo-regret"""
    converted: Bits
    """(…, ⌈horizon/8⌉), a bit for each round: 1 where its decision converts, however late"""

    def __getitem__(self, runs: int | list[int]) -> "Trace":
        """Some of the runs; one of them is not copied."""
        return Trace(self.regret[runs], self.converted[runs])


class Traces:
    """Room for the traces of all runs, by policy: 8 1/8 bytes a round."""

    def __init__(self, policies: list[str], runs: int, horizon: int) -> None:
        self.runs, self.horizon = runs, horizon
        self.by_policy = {
            name: Trace(np.empty((runs, horizon)), np.empty((runs, -(-horizon // 8)), np.uint8)) for name in policies
        }

    def of_run(self, run: int) -> dict[str, Trace]:
        """Return one run's part, to be filled in."""
        return {name: trace[run] for name, trace in self.by_policy.items()}

    def put(self, run: int, traces: Mapping[str, Trace]) -> None:
        """Copy one run's traces into their place."""
        for name, trace in traces.items():
            self.by_policy[name].regret[run] = trace.regret
            self.by_policy[name].converted[run] = trace.converted

    def keep(self, runs: list[int]) -> "Traces":
        """Return the traces of some of the runs."""
        kept = Traces([], len(runs), self.horizon)
        kept.by_policy = {name: trace[runs] for name, trace in self.by_policy.items()}
        return kept
