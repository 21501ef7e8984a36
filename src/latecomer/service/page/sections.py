"""The sections of a bandit's page: rates, lift, time, choices, delays, exploration, verdicts and health."""

from datetime import datetime

from latecomer.service.bandit_report import BanditReport, LiftReport
from latecomer.service.page.charts import (
    draw_bars,
    draw_curve,
    draw_figure,
    draw_interval,
    draw_legend,
    draw_line,
    make_table,
)
from latecomer.service.page.markup import Markup, tag

OTHERS = "others"


def write_rates(report: BanditReport) -> Markup:
    """Show the conversion rates, and why they differ."""
    rates = report.rates
    coming = "–" if rates.on_its_way is None else f"{rates.on_its_way:,.0f}"
    share = "" if rates.share_on_its_way is None else f"{rates.share_on_its_way:.0%} of all"
    cards = [
        _write_card("Decisions", f"{report.decisions:,}", f"{report.open_decisions:,} still open"),
        _write_card("Conversions", f"{report.conversions:,}", f"value {report.value:,.1f}"),
        _write_card("Matured rate", format_share(rates.matured), "corrected for what is on its way", main=True),
        _write_card("Naive rate", format_share(rates.naive), "conversions over decisions"),
        _write_card("Closed rate", format_share(rates.closed), "decisions whose window has closed"),
        _write_card("On their way", coming, share or "conversions still to come"),
    ]
    note = tag("p", f"Why the rates differ: {rates.note}.", class_="note")
    return _write_section("Conversion rate", "rates", tag("dl", *cards, class_="cards"), note)


def _write_card(name: str, value: str, more: str, *, main: bool = False) -> Markup:
    return tag("div", tag("dt", name), tag("dd", tag("b", value), tag("small", more)), class_="main" if main else None)


def write_lift(lift: LiftReport | None, name: str) -> Markup:
    """Show the policy against the control, with the sentence that goes with it."""
    if lift is None:
        text = (
            "No decision was made by a control, so there is nothing to compare with. Create the bandit with a control "
            "share, for example 5 % of uniform choices:"
        )
        body = '{"dim": 8, "window": "7d", "parameters": {"control": {"share": 0.05, "policy": "uniform"}}}'
        return _write_section("Lift over the control", "lift", tag("p", text), write_curl("PUT", f"{name}-2", body))
    rows = [
        ["policy", f"{lift.decisions:,}", format_share(lift.mean)],
        ["control", f"{lift.control_decisions:,}", format_share(lift.control_mean)],
    ]
    table = make_table("Closed decisions and mean value", ["chosen by", "closed decisions", "mean value"], rows)
    bounds = f"{lift.low:+.2%} to {lift.high:+.2%}"
    sentence = tag("p", lift.note[0].upper() + lift.note[1:] + ".", class_="verdict")
    small = tag(
        "p",
        f"Interval {bounds}, at {lift.confidence:.0%}. It is valid at every look, so it may be watched all along, and "
        "while the policy learns; it is for the mean so far, of decisions whose window has closed.",
        class_="note",
    )
    figure = draw_figure(
        "Difference of mean values",
        draw_interval(lift.low, lift.difference or 0.0, lift.high),
        key="lift-table",
        top=f"{lift.difference or 0.0:+.2%}",
        ends=("the control is better", "the policy is better"),
        label=f"Difference {lift.difference or 0.0:+.2%}, interval {bounds}",
        table=table,
    )
    return _write_section("Lift over the control", "lift", sentence, figure, small)


def write_time(report: BanditReport) -> Markup:
    """Show decisions and conversions over time, and the rates of each period."""
    periods, ends = report.periods, find_ends(report)
    most = max((period.decisions for period in periods), default=0)
    most_arrived = max((period.arrived for period in periods), default=0)
    naive = [period.conversions / period.decisions if period.decisions else None for period in periods]
    matured = [
        min(period.conversions / period.matured_decisions, 1.0)
        if period.matured_decisions and period.matured_decisions >= 0.1 * period.decisions
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
        ]
        for period, rate, corrected in zip(periods, naive, matured, strict=True)
    ]
    heads = ["from", "decisions", "conversions that arrived", "naive rate", "matured rate"]
    table = make_table(f"Periods of {width}", heads, rows)
    return _write_section(
        "Over time",
        "time",
        draw_figure(
            "Decisions",
            draw_bars([[period.decisions] for period in periods], most),
            key="decisions-table",
            top=f"up to {most:,} in {width}",
            ends=ends,
            label=f"{report.decisions:,} decisions in periods of {width}",
        ),
        draw_figure(
            "Conversions, when they arrived",
            draw_bars([[0, period.arrived] for period in periods], most_arrived),
            key="arrivals-table",
            top=f"up to {most_arrived:,} in {width}",
            ends=ends,
            label="Conversions by the time at which they were reported",
        ),
        draw_figure(
            "Conversion rate of each period's decisions",
            [*draw_line(naive, highest, series=2), *draw_line(matured, highest, series=0)],
            key="rates-table",
            top=f"up to {format_share(highest)}",
            ends=ends,
            label="The naive and the matured conversion rate by the time of the decision",
            table=table,
        ),
        draw_legend(["matured rate", "", "naive rate"]),
    )


def write_choices(report: BanditReport) -> Markup:
    """Show which action ids are chosen, over time."""
    ids = [choice.id for choice in report.choices if choice.id is not None]
    if not ids:
        text = "The decisions had no action ids. Send `ids` beside `actions` to see here what is chosen."
        return _write_section("What is chosen", "choices", tag("p", text))
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
        ]
        for choice in report.choices
    ]
    heads = ["action id", "decisions", "share", "conversions", "naive rate"]
    return _write_section(
        "What is chosen",
        "choices",
        draw_figure(
            "Share of decisions by action id",
            draw_bars(stacks, 1.0),
            key="choices-table",
            top="100 %",
            ends=find_ends(report),
            label="Share of decisions by action id in each period: " + ", ".join(f"{row[0]} {row[2]}" for row in rows),
            table=make_table("Choices by action id, the commonest first", heads, rows),
        ),
        draw_legend([row[0] for row in rows]),
    )


def write_delays(report: BanditReport) -> Markup:
    """Show the delay curve."""
    if report.delay_curve is None:
        return _write_section("Delays", "delays", tag("p", "This policy does not estimate how late conversions come."))
    in_rounds, longest = isinstance(report.window, int), report.delay_curve[-1][0]

    def name_age(age: float) -> str:
        return f"{age:,.0f} rounds" if in_rounds else format_duration(age)

    points = [(age / longest, share) for age, share in report.delay_curve]
    rows = [[name_age(age), format_share(share)] for age, share in report.delay_curve]
    half = next((age for age, share in report.delay_curve if share >= 0.5), longest)
    table = make_table("Share of conversions that have arrived by an age", ["age of the decision", "arrived"], rows)
    figure = draw_figure(
        "Share of a decision's conversions that have arrived, by its age",
        draw_curve(points, series=0),
        key="delays-table",
        top="100 %",
        ends=("0", name_age(longest)),
        label=f"Half of the conversions have arrived by {name_age(half)}",
        table=table,
    )
    note = f"Half of the conversions that come within the window have arrived by {name_age(half)}."
    return _write_section("Delays", "delays", figure, tag("p", note, class_="note"))


def write_exploration(report: BanditReport) -> Markup:
    """Show how sure the policy's choices are."""
    if report.mean_propensity is None:
        return _write_section("Exploration", "exploration", tag("p", "This policy does not state its propensities."))
    cards = [
        _write_card("Mean propensity", format_share(report.mean_propensity), "of the choices that were made"),
        _write_card("Unsure", format_share(report.unsure_share), "of choices had a propensity below 50 %"),
    ]
    note = "As the policy learns, propensities rise towards 1 and fewer choices are unsure."
    return _write_section(
        "Exploration", "exploration", tag("dl", *cards, class_="cards"), tag("p", note, class_="note")
    )


def write_verdicts(report: BanditReport) -> Markup:
    """Show the verdicts on reports, and the health of the store."""
    rows = [
        [verdict, f"{count:,}", f"{report.revocation_verdicts.get(verdict, 0):,}"]
        for verdict, count in report.conversion_verdicts.items()
    ]
    table = make_table("Verdicts on reports", ["verdict", "conversions", "revocations"], rows)
    parts = [table]
    if report.health is not None:
        health = report.health
        facts = [
            ["store", health.failure or "can be written"],
            ["snapshots", health.snapshot_failure or "in order"],
            ["commits since its start", f"{health.commits:,}"],
            ["clock ahead of the machine's", f"{round(health.clock_offset, 1) + 0.0:,.1f} s"],
            ["quarantined bandits", ", ".join(health.quarantined) or "none"],
        ]
        parts.append(make_table("Health of the store", ["part", "state"], facts))
    return _write_section("Verdicts and health", "verdicts", *parts)


def _write_section(title: str, key: str, *children: Markup) -> Markup:
    return tag("section", tag("h3", title, id=f"{key}-title"), *children, aria_labelledby=f"{key}-title")


def write_curl(method: str, path: str, body: str) -> Markup:
    """Write the command for a next step."""
    command = (
        f"curl -X {method} http://127.0.0.1:8080/v1/bandits/{path} \\\n"
        f"  -H 'Content-Type: application/json' \\\n  -d '{body}'"
    )
    return tag("pre", tag("code", command), tabindex="0", role="region", aria_label="Command")


def format_duration(seconds: float) -> str:
    """Write a duration in its largest unit that it has at least one of.

    >>> format_duration(900), format_duration(86_400), format_duration(5400)
    ('15 min', '1 d', '1.5 h')
    """
    for name, unit in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def find_ends(report: BanditReport) -> tuple[str, str]:
    """Return the names of the first and the last period."""
    if not report.periods:
        return "", ""
    return format_moment(report.periods[0].start), format_moment(report.periods[-1].start)


def format_share(share: float | None) -> str:
    """Write a share as per cent; a dash where there is none."""
    return "–" if share is None else f"{share:.2%}"


def format_moment(moment: datetime) -> str:
    """Write a moment in UTC, to the second where it is not on a minute."""
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment.second else f"{moment:%Y-%m-%d %H:%M}"
