"""An evaluation as a picture for a slide: each policy's estimate with its interval, against what was logged."""

from typing import Any

from matplotlib.figure import Figure

from latecomer.evaluation.result import Evaluation
from latecomer.evaluation.targets import LOGGED
from latecomer.evaluation.text import format_mean, format_window, is_judged_on_part
from latecomer.notebook_figure import NotebookFigure

_OURS, _LOGGED, _GREY = "#0072B2", "#000000", "#888888"  # of Okabe and Ito's palette


def plot_evaluation(found: Evaluation) -> Figure:
    """Draw a line for each row of the table.

    The dashed one is as logged on the rounds that the row is judged on, the thin ones are closed rounds alone.
    """
    rows = found.details.to_dicts()
    several = found.table["estimator"].n_unique() > 1
    figure = NotebookFigure(figsize=(8.6, 1.7 + 0.62 * len(rows)), layout="constrained", dpi=130)
    axes = figure.subplots()
    scale = 1.0 if found.facts["is_value"] else 100.0
    for place, row in enumerate(rows):
        if row["value"] is None:
            continue
        colour = _LOGGED if row["policy"] == LOGGED else _OURS
        axes.plot([scale * row["low"], scale * row["high"]], [place, place], color=colour, linewidth=2.6)
        axes.plot(scale * row["value"], place, "o", color=colour, markersize=8)
        axes.plot([scale * row["logged_value"]] * 2, [place - 0.5, place + 0.5], "--", color=_LOGGED, linewidth=0.9)
        if row["closed_low"] is not None and found.facts["window"] is not None:
            bounds = [scale * row["closed_low"], scale * row["closed_high"]]
            axes.plot(bounds, [place + 0.22] * 2, color=_GREY, linewidth=1.0)
            axes.plot(scale * row["closed_value"], place + 0.22, "o", color=_GREY, markersize=3.5)
        axes.annotate(
            _label(row, scale),
            (1.02, place),
            xycoords=("axes fraction", "data"),
            fontsize=11,
            va="center",
            color=colour,
            annotation_clip=False,
        )
    names = [_name(row, several=several) + _describe_part(row, found) for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=11)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(_describe(found), fontsize=10)
    figure.suptitle(write_finding(found), fontsize=12, x=0.01, ha="left")
    axes.grid(visible=True, axis="x", linewidth=0.4, color="#dddddd")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


def write_finding(found: Evaluation) -> str:
    """Say which policy has the largest lift and its interval; or that none is clearly better than what was done."""
    rows = [row for row in found.details.to_dicts() if row["policy"] != LOGGED and row["lift"] is not None]
    if not rows:
        return "As it was logged"
    best = max(rows, key=lambda row: row["lift"])
    thing = "value" if found.facts["is_value"] else "conversions"
    name = _name(best, several=False)
    bounds = f"[{100 * best['lift_low']:+.0f} to {100 * best['lift_high']:+.0f}]"
    if best["lift_low"] is not None and best["lift_low"] > 0:
        return f"{name}: {100 * best['lift']:+.0f} % {thing} {bounds} over what was done"
    return f"Nothing is clearly better than what was done; {name}: {100 * best['lift']:+.0f} % {bounds}"


def _name(row: dict[str, Any], *, several: bool) -> str:
    name = "as logged" if row["policy"] == LOGGED else str(row["policy"])
    label = f"{name}, {str(row['estimator']).upper()}" if several else name
    return f"\u200b{label}".replace("$", r"\$")  # a leading _ would hide it, a $ start a formula


def _describe_part(row: dict[str, Any], found: Evaluation) -> str:
    """Say what was logged on the rounds that a policy is judged on, where they are not all."""
    if row["logged_value"] is None or not is_judged_on_part(row, found.facts):
        return ""
    shown = format_mean(row["logged_value"], is_share=not found.facts["is_value"])
    return f"\nof {row['rounds']:,} decisions,\nas logged {shown}"


def _label(row: dict[str, Any], scale: float) -> str:
    shown = format_mean(row["value"], is_share=scale > 1.0)
    return shown if row["policy"] == LOGGED or row["lift"] is None else f"{shown}   {100 * row['lift']:+.0f} %"


def _describe(found: Evaluation) -> str:
    facts = found.facts
    what = "value" if facts["is_value"] else "conversions, %,"
    within = "" if facts["window"] is None else f" within {format_window(facts['window'])}"
    thin = "; dashed: as logged" + ("" if facts["window"] is None else "; thin: closed rounds alone")
    return f"{what} for each decision{within}, with {100 * facts['confidence']:g} % intervals{thin}"
