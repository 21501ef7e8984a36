"""The advice as a picture: the share that each window keeps, its cost in simulation, and its bound in theory."""

from textwrap import wrap
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from latecomer.core.state import Array
from latecomer.durations import format_duration
from latecomer.experiments.plots import COLOURS, line_style, make_figure
from latecomer.experiments.window.advice import WindowAdvice
from latecomer.experiments.window.grid import DAY, HOUR, MINUTE
from latecomer.experiments.window.text import format_amount

_TICKS = np.array([1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY])


def plot_window(advice: WindowAdvice) -> Figure:
    """Three panels over the same windows; the dotted line is the recommended one."""
    made, (kept, lost, feared) = make_figure(3, width=3.8, height=4.0)
    made.suptitle("\n".join(wrap(advice.finding, 100)), fontsize=11, x=0.01, ha="left")
    table = advice.table
    seconds = table["seconds"].to_numpy()
    curve = advice.curve.filter(advice.curve["seconds"] >= seconds[0] / 2)
    ages = curve["seconds"].to_numpy()
    if (curve["low"] < curve["high"]).any():  # a law has no band
        kept.fill_between(
            ages, curve["low"], curve["high"], color=COLOURS[0], alpha=0.25, linewidth=0, label="90 % band"
        )
    kept.plot(ages, curve["share"], label="share that has come", **line_style(0))
    if advice.recent is not None:
        recent = advice.recent.filter(advice.recent["seconds"] >= seconds[0] / 2)
        within = format_duration(float(recent["seconds"][-1]))
        kept.plot(recent["seconds"], recent["share"], label=f"later half, within {within}", **line_style(3))
    kept.plot(seconds, table["share"], "o", color=COLOURS[0], markersize=4)
    longest = format_duration(advice.facts["longest_seconds"])
    kept.set(title="Share kept", ylabel=f"share of conversions within {longest}", ylim=(0, 1.03))

    period = format_duration(advice.facts["horizon_seconds"])
    _plot_cost(lost, advice)
    lost.set(title="Simulated loss", ylabel=f"conversions lost in {period}")
    lost.set_ylim(bottom=0)

    feared.plot(seconds, table["bound"], marker="o", markersize=4, label="bound, up to $1/\\tau_M$", **line_style(2))
    feared.set(title="Theorem 2's bound", ylabel=f"bound on conversions lost in {period}", yscale="log")
    _mark_bounds(feared, table["bound"].to_numpy())
    for axes in (kept, lost, feared):
        _label_windows(axes, advice, float(min(ages[0], seconds[0])), float(max(ages[-1], seconds[-1])))
    _add_legend(feared, loc="upper center")  # the bound is high at both ends
    return made


def _plot_cost(axes: Axes, advice: WindowAdvice) -> None:
    """The regret by window, each with the error of its difference from the cheapest, and where it is about the same."""
    table, facts = advice.table, advice.facts
    regret, error = table["regret"].to_numpy(), table["excess_error"].to_numpy()
    axes.errorbar(
        table["seconds"],
        regret,
        yerr=2 * error,
        marker="o",
        markersize=4,
        capsize=2,
        label="± 2 s.e. of excess",
        **line_style(1),
    )
    axes.axhline(facts["regret_of_uniform_play"], color="#888888", linewidth=0.9, label="playing at random")
    least, alike = float(regret.min()), (facts["same_from_seconds"], facts["same_to_seconds"])
    axes.fill_between(
        alike, least, least + facts["tolerance"], color=COLOURS[2], alpha=0.3, linewidth=0, label="about the same"
    )


def _label_windows(axes: Axes, advice: WindowAdvice, first: float, last: float) -> None:
    ticks = _TICKS[(first <= _TICKS) & (last * 1.01 >= _TICKS)]
    axes.set(xscale="log", xlabel="window", xlim=(first, last * 1.15))
    axes.set_xticks(ticks if len(ticks) > 1 else [first, last])
    axes.set_xticklabels([format_duration(tick) for tick in axes.get_xticks()], fontsize=9, rotation=30)
    axes.minorticks_off()
    chosen = advice.recommended.total_seconds()
    axes.axvline(chosen, color="#444444", linewidth=1.1, linestyle=":", label=f"take {format_duration(chosen)}")
    _add_legend(axes)


def _add_legend(axes: Axes, loc: Literal["best", "upper center"] = "best") -> None:
    """Add a legend that covers what runs below it: the dotted line would run through its text."""
    legend = axes.legend(fontsize=9, facecolor="white", framealpha=1.0, edgecolor="none", loc=loc)
    legend.set_zorder(10)


def _mark_bounds(axes: Axes, bounds: Array) -> None:
    """Mark several values on the logarithmic axis of the bounds, however short it is."""
    ratio = float(bounds.max() / bounds.min())
    if ratio < 10.0:
        axes.yaxis.set_major_locator(MaxNLocator(4))
    elif ratio < 1000.0:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    if ratio < 1000.0:
        axes.yaxis.set_major_formatter(lambda value, _: format_amount(value))
