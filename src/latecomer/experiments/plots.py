"""Pictures: axes labelled, bands visible, colours that the colour-blind can tell apart, and line styles besides."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from latecomer.durations import format_duration
from latecomer.experiments.paper.experiments import OURS, RELEASED_TS, RELEASED_UCB, TS, UCB, UCB_BUFFERED, UNIFORM
from latecomer.simulation.plot import COLOURS, draw_result, escape_label, make_figure, plot_result, style_by_position
from latecomer.simulation.result import Result

__all__ = [
    "COLOURS",
    "REPORT_POLICIES",
    "add_shared_legend",
    "line_style",
    "make_figure",
    "plot_coverage",
    "plot_density",
    "plot_growth",
    "plot_regret",
    "plot_regret_panels",
    "plot_sweep",
]

Array = npt.NDArray[np.float64]

REPORT_POLICIES = (UCB, UCB_BUFFERED, TS, RELEASED_UCB, RELEASED_TS, UNIFORM, OURS)


def line_style(position: int, policy: str | None = None) -> dict[str, Any]:
    """Colour and line of the n-th thing in a plot; the report's policies look the same in every plot."""
    return style_by_position(REPORT_POLICIES.index(policy) if policy in REPORT_POLICIES else position)


def plot_regret(result: Result, *, title: str | None = None) -> Figure:
    """One panel of regrets with its legend."""
    return plot_result(result, title=title, style=line_style)


def add_shared_legend(made: Figure, axes: Axes) -> None:
    """One legend for all panels, beneath them."""
    handles, labels = axes.get_legend_handles_labels()
    columns = min(4, len(labels), int(made.get_figwidth() // 3))  # three inches for a name: more would be cut off
    made.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def plot_regret_panels(results: Mapping[str, Result], *, columns: int, title: str) -> Figure:
    """A panel for each result, by name; the title above them says the finding."""
    made, axes = make_figure(columns, -(-len(results) // columns))
    made.suptitle(title)
    for panel, (name, result) in zip(axes, results.items(), strict=True):
        draw_result(panel, result, title=name, style=line_style)
    add_shared_legend(made, axes[0])
    return made


def plot_density(grid: Array, density: Array, *, source: str) -> Figure:
    """The density of log10 delays."""
    made, (axes,) = make_figure(width=6.4, height=4.0)
    axes.fill_between(grid, density, color=COLOURS[0], alpha=0.2, linewidth=0)
    axes.plot(grid, density, **line_style(0))
    half = 10.0 ** grid[np.searchsorted(np.cumsum(density), density.sum() / 2.0)]
    title = f"Half of the conversions come within {format_duration(round(half))} ({source})"
    axes.set(title=title, xlabel="log10 of the delay in seconds", ylabel="density")
    for seconds, name in ((60, "minute"), (3600, "hour"), (86400, "day"), (30 * 86400, "30 days")):
        axes.axvline(np.log10(seconds), color="#888888", linewidth=0.8, linestyle=":")
        axes.text(np.log10(seconds), axes.get_ylim()[1], f" {name}", fontsize=8, va="top", color="#555555")
    axes.set_ylim(bottom=0)
    return made


def plot_sweep(
    points: Sequence[float],
    results: Sequence[Result],
    *,
    title: str,
    xlabel: str,
    mark: tuple[float, str] | None = None,
) -> Figure:
    """Final regret as one number of the world changes."""
    made, (axes,) = make_figure(width=7.0, height=4.6)
    for position, policy in enumerate(results[0].policies):
        finals = np.array([result.final(policy) for result in results])
        low, high = np.quantile(finals, [0.05, 0.95], axis=1)
        line = line_style(position, policy)
        axes.fill_between(points, low, high, color=line["color"], alpha=0.15, linewidth=0)
        axes.plot(points, finals.mean(axis=1), marker="o", markersize=4, label=escape_label(policy), **line)
    axes.set(title=title, xlabel=xlabel, ylabel=f"pseudo-regret at round {results[0].horizon}", xscale="log")
    axes.set_ylim(bottom=0)
    if mark:
        axes.axvline(mark[0], color="#888888", linewidth=0.8, linestyle=":")
        axes.text(mark[0], axes.get_ylim()[1], f" {mark[1]}", fontsize=8, va="top", color="#555555")
    add_shared_legend(made, axes)
    return made


def plot_coverage(rounds: Array, coverage: Array, ratios: Mapping[str, Array], *, floor: float) -> Figure:
    """Theorem 1: how often the set covers, and how much of its radius is used."""
    made, (left, right) = make_figure(2, width=5.4)
    left.plot(rounds, coverage, label="measured, all rounds up to t", **line_style(0))
    left.axhline(floor, label=f"promised, 1 − 2δ = {floor:g}", **line_style(1))
    left.set(title=f"The set covers in {coverage[-1]:.0%} of the runs", xlabel="round", ylabel="share of runs")
    left.set(ylim=(0, 1.05), xlim=(0, rounds[-1]))
    left.legend(frameon=False, fontsize=9, loc="lower left")
    for position, (name, ratio) in enumerate(ratios.items()):
        right.plot(rounds, ratio, label=name, **line_style(position))
    right.axhline(1.0, color="#888888", linewidth=0.8)
    most = max(float(ratio.max()) for ratio in ratios.values())
    right.set(title=f"At most {most:.0%} of the radius is used", xlabel="round", ylabel="deviation / radius")
    right.set(ylim=(0, 1.05), xlim=(0, rounds[-1]))
    right.legend(frameon=False, fontsize=9)
    return made


def plot_growth(horizons: Array, curves: Mapping[str, Array], *, vacuous_until: float | None, title: str) -> Figure:
    """Measured regret between its bounds, as T grows; both axes logarithmic."""
    made, (axes,) = make_figure(width=7.0, height=4.8)
    for position, (name, values) in enumerate(curves.items()):
        axes.plot(horizons, values, marker="o", markersize=3.5, label=name, **line_style(position))
    axes.plot(horizons, horizons, color="#888888", linewidth=0.8, label="T (no bound above this says anything)")
    axes.set(title=title, xlabel="horizon T", ylabel="pseudo-regret", xscale="log", yscale="log")
    if vacuous_until:
        axes.axvline(vacuous_until, color="#888888", linewidth=0.8, linestyle=":")
        label = f"Theorem 2 says something \nfrom T = {vacuous_until:,.0f} "
        axes.text(vacuous_until, axes.get_ylim()[0], label, fontsize=8, va="bottom", ha="right", color="#555555")
    add_shared_legend(made, axes)
    return made
