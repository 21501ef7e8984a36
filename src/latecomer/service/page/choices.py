"""The chosen actions: by action id over time, and by segment of each context feature."""

import math
from collections.abc import Sequence

from latecomer.service.bandit_report import BanditReport, LevelReport, SegmentReport
from latecomer.service.page.charts import draw_bars, draw_figure, draw_legend, draw_shares
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.parts import make_table, write_empty, write_section
from latecomer.service.page.texts import find_ends, format_share, format_value

OTHERS = "others"


def write_choices(report: BanditReport) -> Markup:
    """Show which action ids are chosen, over time."""
    ids = [choice.id for choice in report.choices if choice.id is not None]
    if not ids:
        text = "The decisions had no action ids. Send `ids` beside `actions` to see here what is chosen."
        return write_section("What is chosen", "choices", write_empty(text))
    stacks = []
    for period in report.periods:
        counts = [period.choices[label] for label in ids]
        share = [count / period.decisions if period.decisions else 0.0 for count in counts]
        stacks.append([*share, max(1.0 - sum(share), 0.0) if period.decisions else 0.0])
    rows = [
        [
            OTHERS if choice.id is None else choice.id,
            f"{choice.decisions:,}",
            format_share(choice.decisions / report.decisions),
            f"{choice.conversions:,}",
            format_share(choice.conversions / choice.decisions if choice.decisions else None),
            format_value(choice.value, report.unit),
        ]
        for choice in report.choices
    ]
    heads = ["action id", "decisions", "share", "conversions", "naive rate", "value"]
    figure = draw_figure(
        "Share of decisions by action id",
        draw_bars(stacks, 1.0),
        key="choices-chart",
        axis=("100%", "0"),
        ends=find_ends(report),
        label="Share of decisions by action id in each period: " + ", ".join(f"{row[0]} {row[2]}" for row in rows),
        legend=draw_legend([row[0] for row in rows]),
    )
    table = make_table("Choices by action id, the commonest first", heads, rows)
    return write_section("What is chosen", "choices", tag("div", figure, table, class_="charts"))


def write_segments(report: BanditReport) -> Markup:
    """Show what is chosen by the value of each context feature."""
    if not report.segments:
        text = (
            "The decisions had no context by name, or their offers are not logged. Send `context` and each action's "
            "`features` in place of rows of numbers to see here what is chosen for whom."
        )
        return write_section("Who gets what", "segments", write_empty(text))
    ids = [choice.id for choice in report.choices if choice.id is not None]
    tables = [_write_segment(segment, ids) for segment in report.segments]
    return write_section(
        "Who gets what",
        "segments",
        draw_legend([*ids, *([OTHERS] if _has_others(report, ids) else [])]),
        tag("div", *tables, class_="charts"),
        lead="Choices by the value of each context feature; numbers are in ranges.",
    )


def _has_others(report: BanditReport, ids: Sequence[str]) -> bool:
    levels = [level for segment in report.segments for level in segment.levels]
    return any(sum(level.choices.get(label, 0) for label in ids) < level.decisions for level in levels)


def _write_segment(segment: SegmentReport, ids: Sequence[str]) -> Markup:
    def write(level: LevelReport) -> list[Markup | str]:
        shares = [level.choices.get(label, 0) / level.decisions for label in ids]
        shares.append(max(1.0 - sum(shares), 0.0))
        named = zip([*ids, OTHERS], shares, strict=True)
        words = ", ".join(f"{name} {share:.0%}" for name, share in named if share >= 0.005)
        return [
            OTHERS if level.level is None else level.level,
            draw_shares(shares, words),
            f"{level.decisions:,}",
            format_share(level.conversions / level.decisions),
        ]

    rows = [write(level) for level in order_levels(segment.levels) if level.decisions]
    return make_table(f"By {segment.feature}", [segment.feature, "what is chosen", "decisions", "naive rate"], rows)


def order_levels(levels: Sequence[LevelReport]) -> list[LevelReport]:
    """Order ranges of numbers by where they begin, and leave texts as they are, the commonest first."""
    try:
        return sorted(levels, key=lambda level: math.inf if level.level is None else _find_begin(level.level))
    except ValueError:  # a text
        return list(levels)


def _find_begin(level: str) -> float:
    return float(level.partition(" to ")[0])
