"""Verdicts on reports, and warnings about reports that were accepted and look wrong."""

import warnings
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from latecomer.errors import OccurredBeforeDecisionWarning
from latecomer.policies.base.decision import Verdict

OCCURRED_BEFORE_DECISION = "occurred_before_decision"
_MESSAGE = "occurred_at lies before the decision: accepted, but left out of the delay curve; check its zone and unit"


class ReportWarning(Struct, frozen=True):
    """A report that was accepted and looks wrong: its index among the reports, a code for programs, and a sentence."""

    index: int
    code: str
    message: str


class Attributed(Struct, frozen=True):
    """The decisions that a conversion of a subject was credited to: its index among the reports, and their ids."""

    index: int
    decision_ids: list[str]


class VerdictList(list[Verdict]):
    """A list of verdicts, one for each report in their order; `warnings` is about some accepted ones.

    `attributed` has the decisions of those that named a subject.
    """

    def __init__(self, verdicts: Iterable[Verdict] = (), warnings: Iterable[ReportWarning] = ()) -> None:
        super().__init__(verdicts)
        self.warnings = list(warnings)
        self.attributed: list[Attributed] = []

    def append_portion(
        self, verdicts: list[Verdict], warnings: list[ReportWarning], attributed: Iterable[Attributed] = ()
    ) -> None:
        """Append the verdicts on the next reports; the indices of their warnings move up by the length so far."""
        start = len(self)
        self.extend(verdicts)
        self.warnings += [ReportWarning(start + found.index, found.code, found.message) for found in warnings]
        self.attributed += [Attributed(start + found.index, found.decision_ids) for found in attributed]

    def warn(self) -> "VerdictList":
        """Raise the warnings as Python warnings, at the line of the caller's caller."""
        warn_of(Counter(found.code for found in self.warnings), stacklevel=4)
        return self


def make_early_warnings(indices: Iterable[int]) -> list[ReportWarning]:
    """Return a warning for each conversion that occurred before its decision, by index."""
    return [ReportWarning(index, OCCURRED_BEFORE_DECISION, _MESSAGE) for index in indices]


def warn_of(codes: Counter[str], *, stacklevel: int) -> None:
    """Issue Python warnings for reports that were accepted and look wrong, counted by code."""
    if count := codes[OCCURRED_BEFORE_DECISION]:
        many = "" if count == 1 else f"{count:,} conversions: "
        warnings.warn(f"{many}{_MESSAGE}", OccurredBeforeDecisionWarning, stacklevel=stacklevel)
