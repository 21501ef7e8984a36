"""Refusals and warnings: what a log cannot say, and what to know of what it says."""

import math
from collections.abc import Mapping

import numpy as np

from latecomer.delays.estimation.dependence import DependenceTest
from latecomer.errors import NotIdentifiableError
from latecomer.evaluation.betting import USEFUL_ROUNDS, BettingInterval
from latecomer.evaluation.decision_log import DecisionLog
from latecomer.evaluation.estimators import Estimate, effective_conversions, mean_weight
from latecomer.evaluation.passes import TargetSums
from latecomer.evaluation.sums import OUTCOME

ENOUGH = 30
"""Effective conversions, or conversions of closed rounds, below which intervals mean little."""
_UNSEEN_SHARE = 0.001
_LOST_SHARE, _CERTAIN = 0.1, 5.0
"""Support is said to be missing where the mean weight is so far below 1, by so many standard errors."""
_REMEDY = (
    "let the policy play what the log has, leave those rounds out, or log with a floor (floor=0.02), which gives every "
    "action a chance"
)


def check_support(name: str, found: TargetSums, log: DecisionLog) -> None:
    """Refuse a target that plays what the logging policy never could."""
    if not found.sums.rounds:
        raise NotIdentifiableError(f"policy {name!r} has no round of the log to be judged on: leave it more of the log")
    unseen = (found.logged == 0.0) & (found.planned > 0.0)
    share = float(found.planned[unseen].sum() / found.planned.sum()) if unseen.any() else 0.0
    if share > _UNSEEN_SHARE:
        items = ", ".join(repr(log.items[place]) for place in np.flatnonzero(unseen)[:3])
        raise NotIdentifiableError(
            f"policy {name!r} plays actions that the log never has, in {share:.1%} of rounds ({items}): what they "
            f"would have earned cannot be known; {_REMEDY}"
        )
    mean, error = mean_weight(found.sums)
    if mean + _CERTAIN * error < 1.0 - _LOST_SHARE:
        raise NotIdentifiableError(
            f"policy {name!r} plays actions that logging could not have chosen: the mean weight is {mean:.3f} ± "
            f"{error:.3f}, and 1 where every action that it plays had a chance; {_REMEDY}"
        )


def warn_of_target(name: str, found: TargetSums, matured: Estimate, closed: Estimate, *, is_logged: bool) -> list[str]:
    """Say what is doubtful about one target's estimate."""
    warnings = []
    effective = effective_conversions(found.sums)
    if effective < ENOUGH:
        warnings.append(
            f"{name}: {effective:.0f} effective conversions, fewer than {ENOUGH}: the interval is too short, and the "
            "estimate may rest on a few rounds of large weight"
        )
    mean, error = mean_weight(found.sums)
    if not is_logged and abs(mean - 1.0) > 3.0 * error + 1e-9:
        warnings.append(
            f"{name}: the mean weight is {mean:.3f} ± {error:.3f}, and not 1: the propensities are wrong, or the "
            "policy plays what logging rarely or never could"
        )
    if _are_apart(matured, closed):
        warnings.append(
            f"{name}: closed rounds alone give {closed.value:.4g}, outside the interval of all rounds: rates have "
            "changed lately, or delays have"
        )
    return warnings


def warn_of_log(log: DecisionLog, logged: TargetSums, tests: Mapping[str, DependenceTest]) -> list[str]:
    """Say what is doubtful about the log itself."""
    warnings = [log.counts.warning] if log.counts.warning else []
    closed = float(logged.sums.by_bin[-1, OUTCOME])
    if not log.is_closed and log.layout.value is None and closed < ENOUGH:
        warnings.append(
            f"only {closed:.0f} conversions are of rounds whose window is closed: the end of the delay curve, and with "
            "it every figure, is uncertain; take a shorter window"
        )
    meanings = {
        "action": "delays depend on the action: an action whose conversions come late looks worse than it is while its "
        "rounds are open; compare closed rounds alone (closed_value in details)",
        "drift": "delays drift over the time of the log: the pooled delay curve fits no time well; read the log from "
        "a later day on, or compare closed rounds alone (closed_value in details)",
    }
    for name, test in tests.items():
        if test.rejects:
            p = f"p = {test.p_value:.2g}" if test.p_value >= 1e-10 else "p < 1e-10"
            warnings.append(f"{meanings[name]} ({p}, {test.conversions:,} conversions)")
    return warnings


def warn_of_looks(bounds: Mapping[str, BettingInterval]) -> list[str]:
    """Say where the intervals that are valid at every look are too wide to be of use."""
    few = [interval.rounds for interval in bounds.values() if interval.rounds < USEFUL_ROUNDS]
    if not few:
        return []
    return [
        f"the intervals at every look rest on {min(few):,} closed rounds: below {USEFUL_ROUNDS:,} they are too wide to "
        "be of much use"
    ]


def _are_apart(one: Estimate, other: Estimate) -> bool:
    """Tell whether both intervals are known and do not meet."""
    bounds = (*one.interval, *other.interval)
    return not any(map(math.isnan, bounds)) and (bounds[0] > bounds[3] or bounds[2] > bounds[1])
