"""Decisions, conversions and rates over time."""

from latecomer.service.bandit_report import BanditReport
from latecomer.service.page.charts import draw_bars, draw_figure, draw_legend, draw_line
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.parts import fold, make_table, write_section
from latecomer.service.page.texts import find_ends, format_duration, format_moment, format_share, format_value

LEAST_MATURITY = 0.4
"""A period's matured rate is shown once so much of its conversions has had time to arrive."""


def write_time(report: BanditReport) -> Markup:
    """Show decisions and conversions over time, and the rates of each period."""
    periods, ends = report.periods, find_ends(report)
    most = max((period.decisions for period in periods), default=0)
    most_arrived = max((period.arrived for period in periods), default=0)
    most_value = max((period.value for period in periods), default=0.0)
    naive = [period.conversions / period.decisions if period.decisions else None for period in periods]
    matured = [
        min(period.conversions / period.matured_decisions, 1.0)
        if period.matured_decisions and period.matured_decisions >= LEAST_MATURITY * period.decisions
        else None
        for period in periods
    ]
    highest = max((rate for rate in (*naive, *matured) if rate is not None), default=0.0)
    width = format_duration(report.period_seconds)
    rows = [
        [
            format_moment(period.start),
            f"{period.decisions:,}",
            f"{period.arrived:,}",
            format_share(rate),
            format_share(corrected),
            format_value(period.value, report.unit),
        ]
        for period, rate, corrected in zip(periods, naive, matured, strict=True)
    ]
    heads = ["from (UTC)", "decisions", "conversions that arrived", "naive rate", "matured rate", "value"]
    charts = [
        draw_figure(
            "Conversion rate of each period's decisions",
            [*draw_line(naive, highest, series=2), *draw_line(matured, highest, series=0)],
            key="rates-table",
            axis=(format_share(highest), "0"),
            ends=ends,
            label="The naive and the matured conversion rate by the time of the decision",
            legend=draw_legend(["matured rate", "", "naive rate"]),
        ),
        draw_figure(
            "Decisions",
            draw_bars([[period.decisions] for period in periods], most),
            key="decisions-table",
            axis=(f"{most:,}", "0"),
            ends=ends,
            label=f"{report.decisions:,} decisions in periods of {width}",
        ),
        draw_figure(
            "Conversions, when they arrived",
            draw_bars([[0, period.arrived] for period in periods], most_arrived),
            key="arrivals-table",
            axis=(f"{most_arrived:,}", "0"),
            ends=ends,
            label="Conversions by the time at which they were reported",
        ),
        draw_figure(
            "Value of each period's decisions",
            draw_bars([[0, 0, 0, period.value] for period in periods], most_value),
            key="value-table",
            axis=(format_value(most_value, report.unit), "0"),
            ends=ends,
            label="The value of conversions, by the time of their decisions",
        ),
    ]
    lead = f"Periods of {width}. The latest naive rates always fall: their conversions have not had time to come."
    table = fold("Show the numbers", "time-table", make_table(f"Periods of {width}", heads, rows))
    return write_section("Over time", "time", tag("div", *charts, class_="charts"), table, lead=lead)
