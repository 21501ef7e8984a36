"""The lift of the policy over the control, with an interval that is valid at every look, and its sentence."""

from latecomer.core.state import Integers
from latecomer.evaluation import arm_comparison
from latecomer.service.bandit.tally.open_rounds import UNIT
from latecomer.service.bandit_report import LiftReport


def compare_arms(closed: Integers) -> LiftReport:
    """Compare the policy with the control, given closed rounds, conversions and values of both."""
    (count, _, total), (control_count, _, control_total) = closed.tolist()
    found = arm_comparison.compare_arms((count, total / UNIT), (control_count, control_total / UNIT))
    return LiftReport(
        decisions=found.decisions,
        mean=found.mean,
        control_decisions=found.other_decisions,
        control_mean=found.other_mean,
        difference=found.difference,
        low=found.low,
        high=found.high,
        confidence=found.confidence,
        more_decisions=found.more_decisions,
        note=found.note,
    )
