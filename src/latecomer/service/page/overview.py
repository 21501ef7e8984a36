"""The first sections of a bandit's page: rates and value, and the lift over the control."""

import json

from latecomer.evaluation.arm_comparison import format_points
from latecomer.service.bandit_report import BanditReport, LiftReport
from latecomer.service.page.charts import draw_interval
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.parts import make_table, write_card, write_cards, write_curl, write_empty, write_section
from latecomer.service.page.texts import NONE, format_share, format_value


def write_rates(report: BanditReport) -> Markup:
    """Show the conversion rates, the value, and why the rates differ."""
    rates = report.rates
    coming = NONE if rates.on_its_way is None else f"{rates.on_its_way:,.0f}"
    share = "" if rates.share_on_its_way is None else f"{rates.share_on_its_way:.0%} of all conversions"
    each = report.value / report.decisions if report.decisions else 0.0
    cards = write_cards(
        write_card(
            "Matured rate",
            format_share(rates.matured),
            "corrected for what is on its way",
            main=rates.matured is not None,
        ),
        write_card("Naive rate", format_share(rates.naive), "conversions over decisions"),
        write_card(
            "Closed rate",
            format_share(rates.closed),
            "decisions whose window has closed",
            main=rates.matured is None,
        ),
        write_card("Decisions", f"{report.decisions:,}", f"{report.open_decisions:,} still open"),
        write_card("Conversions", f"{report.conversions:,}", "credited so far"),
        write_card("On their way", coming, share or "conversions still to come"),
        write_card("Value", format_value(report.value, report.unit), f"{format_value(each, report.unit)} a decision")
        if report.unit
        else write_card("Value", format_value(report.value, None), "sum of the conversions' values"),
    )
    note = tag("p", tag("b", "Why the rates differ: "), f"{rates.note}.", class_="note")
    return write_section("Conversion rate", "rates", cards, note, _write_first_conversion(report))


def _write_first_conversion(report: BanditReport) -> Markup | None:
    """Say how to report a conversion, where none has been reported yet."""
    if sum(report.conversion_verdicts.values()):
        return None
    text = "No conversion has been reported yet. Report one by the `decision_id` of its decision, whenever it comes:"
    latest = report.recent[0].decision_id if report.recent else ""
    body = f'{{"decision_id": "{latest or "…"}"}}'
    return write_empty(text, write_curl("POST", f"{report.name}/conversions", body))


def write_lift(report: BanditReport) -> Markup:
    """Show the policy against the control, with the sentence that goes with it."""
    lift = report.lift
    if lift is None:
        text = (
            "No decision was made by a control, so there is nothing to compare with. Create the bandit with a control "
            "share, for example 5% of uniform choices:"
        )
        parameters = {"control": {"share": 0.05, "policy": "uniform"}}
        body = json.dumps({"dim": report.dim, "window": report.window, "parameters": parameters})
        return write_section(
            "Lift over the control", "lift", write_empty(text, write_curl("PUT", f"{report.name}-2", body))
        )
    difference, reach = lift.difference or 0.0, max(abs(lift.low), abs(lift.high)) * 1.05
    points, low, high = (format_points(part) for part in (difference, lift.low, lift.high))
    figure = tag(
        "figure",
        draw_interval(
            lift.low, difference, lift.high, reach=reach, label=f"Difference {points}, interval {low} to {high}"
        ),
        tag(
            "div",
            tag("span", f"the {lift.arms[1]} is better"),
            tag("span", "0"),
            tag("span", f"the {lift.arms[0]} is better"),
            class_="ends",
            aria_hidden="true",
        ),
        class_="lift",
    )
    means = (lift.arms[0], lift.decisions, lift.mean), (lift.arms[1], lift.control_decisions, lift.control_mean)
    rows = [
        [arm, f"{count:,}", _format_matured(report, arm), format_share(mean), _format_mean(report, mean)]
        for arm, count, mean in means
    ]
    rows += [
        [word, "", "", text, _format_mean(report, part)]
        for word, text, part in (
            ("difference", points, lift.difference),
            ("at least", low, lift.low),
            ("at most", high, lift.high),
        )
    ]
    heads = ["who chose", "closed decisions", "matured rate", "mean value"]
    if report.unit is None:
        rows = [row[:-1] for row in rows]
    else:
        heads.append(f"in {report.unit.name}")
    small = tag(
        "p",
        f"The interval, of the difference, is at {lift.confidence:.0%} and valid at every look, so it may be watched "
        "all along, also while the policy learns. It is for the mean so far, of decisions whose window has closed. "
        "Points are percentage points: from 5% to 8% is +3 points, a share of +60%. The matured rate is of all "
        "decisions, corrected for what is on its way.",
        class_="note",
    )
    return write_section(
        f"Lift over the {lift.arms[1]}",
        "lift",
        tag("p", lift.note[0].upper() + lift.note[1:] + ".", class_="verdict"),
        _write_worth(report, lift),
        figure,
        make_table("Mean value of a closed decision", heads, rows),
        small,
    )


def _format_matured(report: BanditReport, arm: str) -> str:
    return format_share(report.arms[arm].matured) if arm in report.arms else NONE


def _format_mean(report: BanditReport, mean: float | None) -> str:
    return "" if report.unit is None or mean is None else format_value(mean, report.unit)


def _write_worth(report: BanditReport, lift: LiftReport) -> Markup | None:
    """Say what the difference is worth on the policy's closed decisions, in the user's unit."""
    if report.unit is None or lift.difference is None or not lift.decisions:
        return None
    value, low, high = (
        format_value(part * lift.decisions, report.unit) for part in (lift.difference, lift.low, lift.high)
    )
    text = f"On the {lift.arms[0]}'s {lift.decisions:,} closed decisions that is {value}, between {low} and {high}."
    return tag("p", text)
