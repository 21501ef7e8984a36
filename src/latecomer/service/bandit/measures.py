"""The measures of a bandit for monitoring: counts, alarms, expected conversions, and sums by action id."""

from typing import TYPE_CHECKING

from msgspec import Struct

from latecomer.service.bandit.alarms import list_alarms
from latecomer.service.bandit.tally import tally as columns
from latecomer.service.bandit.tally.exact_sums import join_parts
from latecomer.service.messages import Alarm, BanditCounts

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

MOST_ACTIONS = 20
"""Action ids that are measured by themselves: the first so many that were chosen. So no time series ever ends."""
OTHERS = ""
"""The id that stands for all others, and for choices without an id."""


class ActionMeasures(Struct, frozen=True):
    """Choices of an action id, and their conversions and values less what was revoked."""

    decisions: int = 0
    conversions: int = 0
    value: float = 0.0


class BanditMeasures(Struct, frozen=True, kw_only=True):
    """The measures of one bandit; sums begin with the first round that its tally counts."""

    counts: BanditCounts
    alarms: list[Alarm]
    expected_conversions: float
    value: float
    actions: dict[str, ActionMeasures]


def measure_bandit(bandit: "Bandit", *, now: int) -> BanditMeasures:
    """Measure a bandit as of `now`, the store's time."""
    alarms = list_alarms(bandit, now=now)
    return BanditMeasures(
        counts=bandit.count(),
        alarms=alarms,
        expected_conversions=bandit.monitor.flow.expected,
        value=bandit.tally.value,
        actions=_measure_actions(bandit),
    )


def _measure_actions(bandit: "Bandit") -> dict[str, ActionMeasures]:
    tally = bandit.tally
    decisions = tally.choices.counts.sum(axis=0).tolist()
    rows = zip(tally.names, decisions, tally.credited_by_slot.tolist(), tally.value_by_slot.tolist(), strict=False)
    found: dict[str, ActionMeasures] = {}
    for slot, (name, chosen, credited, value) in enumerate(rows):
        label = name if columns.OTHER_IDS < slot <= columns.OTHER_IDS + MOST_ACTIONS else OTHERS
        sums = found.get(label, ActionMeasures())
        found[label] = ActionMeasures(
            sums.decisions + chosen, sums.conversions + credited, sums.value + join_parts(value)
        )
    return {label: sums for label, sums in found.items() if sums.decisions}
