"""Verdicts on reports, and warnings about reports that were taken and look wrong."""

import warnings
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from latecomer.errors import OccurredBeforeDecisionWarning
from latecomer.policies.base.decision import Verdict

OCCURRED_BEFORE_DECISION = "occurred_before_decision"
_MESSAGE = "occurred_at lies before the decision: accepted, but left out of the delay curve; check its zone and unit"


class ReportWarning(Struct, frozen=True):
    """A report that was taken and looks wrong: its place among the reports, a code for programs, and a sentence."""

    index: int
    code: str
    message: str


class Verdicts(list[Verdict]):
    """A verdict for each report, in their order; `warnings` is about some of those that were accepted."""

    def __init__(self, verdicts: Iterable[Verdict] = (), warnings: Iterable[ReportWarning] = ()) -> None:
        super().__init__(verdicts)
        self.warnings = list(warnings)

    def append_portion(self, verdicts: list[Verdict], warnings: list[ReportWarning]) -> None:
        """Add the verdicts on the reports that follow, with the places of their warnings moved up."""
        start = len(self)
        self.extend(verdicts)
        self.warnings += [ReportWarning(start + found.index, found.code, found.message) for found in warnings]

    def warn(self) -> "Verdicts":
        """Show the warnings to the caller's caller, as Python's warnings."""
        warn_of(Counter(found.code for found in self.warnings), stacklevel=4)
        return self


def warnings_of_early(places: Iterable[int]) -> list[ReportWarning]:
    """Make the warnings about conversions that occurred before their decisions."""
    return [ReportWarning(place, OCCURRED_BEFORE_DECISION, _MESSAGE) for place in places]


def warn_of(codes: Counter[str], *, stacklevel: int) -> None:
    """Warn in Python of reports that were taken and look wrong, by code."""
    if count := codes[OCCURRED_BEFORE_DECISION]:
        many = "" if count == 1 else f"{count:,} conversions: "
        warnings.warn(f"{many}{_MESSAGE}", OccurredBeforeDecisionWarning, stacklevel=stacklevel)
