"""The lift of one arm over another, with an interval that is valid at every look, and its sentence."""

from latecomer.core.state import Integers
from latecomer.evaluation import arm_comparison
from latecomer.evaluation.arm_comparison import ArmComparison
from latecomer.service.bandit.tally.exact_sums import join_parts
from latecomer.service.bandit_report import LiftReport

ARMS, CONTEST = ("policy", "control"), ("challenger", "champion")
"""The names of the two arms, and those where a challenger is compared with the policy."""


def compare_closed(closed: Integers, names: tuple[str, str] = ARMS) -> ArmComparison:
    """Compare the two arms, given closed rounds, conversions and the parts of the sum of values of both."""
    (count, _, *total), (other_count, _, *other_total) = closed.tolist()
    arms = (count, join_parts(total)), (other_count, join_parts(other_total))
    return arm_comparison.compare_arms(*arms, name=names[0], against=names[1])


def report_lift(closed: Integers, names: tuple[str, str] = ARMS) -> LiftReport:
    """Report on the first arm against the second, given the closed rounds of both as `compare_closed` takes them."""
    found = compare_closed(closed, names)
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
        arms=names,
    )
