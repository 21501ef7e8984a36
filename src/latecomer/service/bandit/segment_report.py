"""Segments of a report: decisions, conversions and choices by the value of each context feature."""

from collections.abc import Sequence

from latecomer.service.bandit.tally.segments import MOST_SLOTS, OTHER_LEVELS
from latecomer.service.bandit.tally.tally import Tally
from latecomer.service.bandit_report import LevelReport, SegmentReport

MOST_SHOWN = 12
"""Values of a feature in a report, the commonest; all others are counted together."""


def report_segments(tally: Tally, ids: Sequence[str]) -> list[SegmentReport]:
    """Report on each context feature; `ids` are the action ids whose choices are listed."""
    return [_report_feature(tally, name, number, ids) for name, number in tally.segments.features.items()]


def _report_feature(tally: Tally, name: str, number: int, ids: Sequence[str]) -> SegmentReport:
    decided, credited = tally.segments.counts[:, number]
    codes = tally.segments.levels[number]
    totals = decided.sum(axis=1)
    ranked = sorted(codes.items(), key=lambda item: (-int(totals[item[1]]), item[1]))
    shown, rest = ranked[:MOST_SHOWN], [OTHER_LEVELS, *(code for _, code in ranked[MOST_SHOWN:])]

    def report(level: str | None, places: list[int]) -> LevelReport:
        return LevelReport(
            level=level,
            decisions=int(totals[places].sum()),
            conversions=int(credited[places].sum()),
            choices={
                label: int(decided[places, tally.slots[label]].sum())
                for label in ids
                if tally.slots[label] < MOST_SLOTS
            },
        )

    levels = [report(text, [code]) for text, code in shown]
    if totals[rest].sum():
        levels.append(report(None, rest))
    return SegmentReport(feature=name, levels=levels)
