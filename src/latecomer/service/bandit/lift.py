"""The lift of the policy over the control, with an interval that is valid at every look, and its sentence."""

import math

from latecomer.core.state import Integers
from latecomer.evaluation.running_mean import bound_running_mean
from latecomer.service.bandit.tally.open_rounds import UNIT
from latecomer.service.bandit_report import LiftReport

CONFIDENCE = 0.95
_LEAST = 30
"""Closed decisions of the control below which no number of further ones is named."""


def compare_arms(closed: Integers) -> LiftReport:
    """Compare the policy with the control, given closed rounds, conversions and values of both.

    Each mean has an interval that fails with probability α/2 at most; so their difference has one that fails with α.
    """
    (count, _, total), (control_count, _, control_total) = closed.tolist()
    total, control_total = total / UNIT, control_total / UNIT
    each = 0.5 + 0.5 * CONFIDENCE
    low, high = bound_running_mean(count, total, confidence=each)
    control_low, control_high = bound_running_mean(control_count, control_total, confidence=each)
    mean, control_mean = (total / count if count else None), (control_total / control_count if control_count else None)
    difference = None if mean is None or control_mean is None else mean - control_mean
    bounds = (low - control_high, high - control_low)
    more = None
    if difference is not None and not bounds[0] <= 0.0 <= bounds[1]:
        more = 0
    elif difference and min(count, control_count) >= _LEAST:
        width = max(difference - bounds[0], bounds[1] - difference)
        more = _round_up((count + control_count) * max((width / abs(difference)) ** 2 - 1.0, 0.05))
    return LiftReport(
        decisions=count,
        mean=mean,
        control_decisions=control_count,
        control_mean=control_mean,
        difference=difference,
        low=bounds[0],
        high=bounds[1],
        confidence=CONFIDENCE,
        more_decisions=more,
        note=_write_note(difference, bounds, control_mean, more),
    )


def _round_up(number: float) -> int:
    """Round up to one digit: it is a rough number. Widths shrink as 1/√n, and the difference may change."""
    size = int(10.0 ** math.floor(math.log10(max(number, 1.0))))
    return math.ceil(number / size) * size


def _write_note(
    difference: float | None, bounds: tuple[float, float], control_mean: float | None, more: int | None
) -> str:
    if difference is None:
        return "not enough yet: no decision of the policy and of the control has closed its window"
    if more == 0:
        word = "better" if difference > 0 else "worse"
        relative = f", {difference / control_mean:+.0%} of the control's" if control_mean else ""
        return (
            f"the policy is {word} than the control: {difference:+.2%} a decision{relative}, between {bounds[0]:+.2%} "
            f"and {bounds[1]:+.2%}"
        )
    if more is None:
        return "not enough yet: the control has too few closed decisions to say how many more it takes"
    return f"not enough yet: about {more:,} more decisions, if the difference stays as it is ({difference:+.2%})"
