"""The panels of what the policy has learnt: delays, exploration, and the weights of features."""

from latecomer.service.bandit_report import BanditReport
from latecomer.service.page.charts import draw_band, draw_bars, draw_curve, draw_figure, draw_interval, draw_line
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.parts import make_table, write_card, write_cards, write_empty, write_section
from latecomer.service.page.texts import NONE, find_ends, format_duration, format_share


def write_delays(report: BanditReport) -> Markup:
    """Show the delay curve with its band, and the share that is still on its way."""
    if report.delay_curve is None:
        text = "This policy does not estimate how late conversions come; the default one does."
        return write_section("Delays", "delays", write_empty(text))
    if report.rates.matured is None:
        return write_section("Delays", "delays", write_empty("Too few conversions have come to know their delays."))
    in_rounds, longest = isinstance(report.window, int), report.delay_curve[-1][0]

    def name_age(age: float) -> str:
        return f"{age:,.0f} rounds" if in_rounds else format_duration(age)

    points = [(age / longest, share) for age, share in report.delay_curve]
    ages = [age for age, _ in report.delay_curve]
    band = report.delay_band or [[0.0, 1.0]] * len(ages)
    rows = [
        [name_age(age), format_share(share), f"{format_share(low)} to {format_share(high)}"]
        for (age, share), (low, high) in zip(report.delay_curve, band, strict=True)
    ]
    half = next((age for age, share in report.delay_curve if share >= 0.5), longest)
    figure = draw_figure(
        "Share of a decision's conversions that have arrived, by its age",
        [
            *draw_band([(age / longest, low, high) for age, (low, high) in zip(ages, band, strict=True)]),
            *draw_curve(points, series=0),
        ],
        key="delays-table",
        axis=("100%", "0"),
        ends=("0", name_age(longest / 2), name_age(longest)),
        label=f"Half of the conversions have arrived by {name_age(half)}",
        table=make_table("Arrived by an age", ["age of the decision", "arrived", "90% band"], rows),
    )
    lead = f"Half of the conversions that come within the window have arrived by {name_age(half)}."
    if report.rates.share_on_its_way is not None:
        lead += f" {report.rates.share_on_its_way:.0%} of all are still on their way."
    return write_section("Delays", "delays", figure, lead=lead)


def write_exploration(report: BanditReport) -> Markup:
    """Show how sure the policy's choices are, and how many are not greedy."""
    explored = report.exploration
    greedy = explored.non_greedy_share
    cards = write_cards(
        write_card(
            "Not greedy",
            NONE if greedy is None else f"{greedy:.0%}",
            f"of the latest {explored.looked_at:,} choices" if explored.looked_at else "needs logged offers",
            main=True,
        ),
        write_card("Mean propensity", format_share(explored.mean_propensity), "of the choices that were made"),
        write_card("Unsure", format_share(explored.unsure_share), "of choices had a propensity below 50%"),
    )
    lead = (
        "A choice is greedy where no other action on offer has a higher estimate today. As the policy learns, "
        "propensities rise towards 1 and fewer choices are unsure."
    )
    if explored.mean_propensity is None:
        text = "This policy does not state its propensities; `floor`, `draws` or a `control` among its parameters do."
        return write_section("Exploration", "exploration", cards, write_empty(text), lead=lead)
    counts = explored.propensity_counts
    most = max(counts)
    names = [f"{bin / 10:.1f} to {(bin + 1) / 10:.1f}" for bin in range(len(counts))]
    known = sum(counts)
    rows = [[name, f"{count:,}", format_share(count / known)] for name, count in zip(names, counts, strict=True)]
    charts = [
        draw_figure(
            "Propensities of the policy's choices",
            draw_bars([[count] for count in counts], most),
            key="propensities-table",
            axis=(f"{most:,}", "0"),
            ends=("0", "0.5", "1"),
            label=f"Propensities in ten parts; the commonest is {names[counts.index(most)]}",
            table=make_table("Choices by propensity", ["propensity", "choices", "share"], rows),
        ),
        draw_figure(
            "Mean propensity over time",
            draw_line([period.mean_propensity for period in report.periods], 1.0, series=0),
            key="mean-propensity-table",
            axis=("1", "0"),
            ends=find_ends(report),
            label="The mean propensity of each period's choices",
        ),
    ]
    return write_section("Exploration", "exploration", cards, tag("div", *charts, class_="charts"), lead=lead)


def write_weights(report: BanditReport) -> Markup:
    """Show the features of the largest weights, with their intervals."""
    if not report.weights:
        text = (
            "The features of this bandit are hashed, so their weights have no names. Create a bandit with an "
            "`encoder` that declares them to see here what counts."
        )
        return write_section("What counts", "weights", write_empty(text))
    reach = max(max(abs(part.low), abs(part.high)) for part in report.weights)
    rows = [
        [
            part.feature,
            draw_interval(part.low, part.weight, part.high, reach=reach, label=f"{part.low:+.3f} to {part.high:+.3f}"),
            f"{part.weight:+.3f}",
            f"{part.low:+.3f} to {part.high:+.3f}",
        ]
        for part in report.weights
    ]
    return write_section(
        "What counts",
        "weights",
        make_table("The largest weights", ["feature", "below 0 | above 0", "weight", "90% interval"], rows),
        lead="What each feature adds to the estimated rate of an action. The intervals are a heuristic.",
    )
