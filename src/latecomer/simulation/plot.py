"""Pictures of a result: bands visible, colours that the colour-blind can tell apart, and line styles besides."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from latecomer.core.state import Array, Integers
from latecomer.notebook_figure import NotebookFigure
from latecomer.simulation.result import Result

# Okabe and Ito's palette, the yellow left out: it does not show on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))  # one fewer than colours

_POINTS = 400
"""Points of a curve."""

Quantity = Literal["regret", "conversions"]
LABELS = {
    "regret": ("cumulative pseudo-regret", "lost sales, against the best choices"),
    "conversions": ("conversions of the decisions so far", "sales of the decisions so far"),
}
"""A quantity over rounds; and where the user gave a rate, so that the axis is in days."""
Style = Callable[[int, str], dict[str, Any]]
"""Colour and line of the n-th policy, of that name."""


def make_figure(
    columns: int = 1, rows: int = 1, *, width: float = 4.6, height: float = 3.6
) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, and its axes row by row."""
    made = NotebookFigure(figsize=(width * columns, height * rows), layout="constrained", dpi=110)
    axes = np.atleast_1d(made.subplots(rows, columns)).ravel().tolist()
    for panel in axes:
        panel.grid(visible=True, linewidth=0.4, color="#dddddd")
        panel.spines[["top", "right"]].set_visible(False)
    return made, axes


def style_by_position(position: int, policy: str = "") -> dict[str, Any]:
    """Colour and line of the n-th thing in a plot."""
    return {"color": COLOURS[position % len(COLOURS)], "linestyle": STYLES[position % len(STYLES)], "linewidth": 1.7}


def escape_label(label: str) -> str:
    """A user's name for a policy, safe from Matplotlib: a leading _ would hide it, a $ start a formula."""
    return f"\u200b{label}".replace("$", r"\$")


def draw_result(
    axes: Axes, result: Result, *, title: str, quantity: Quantity = "regret", style: Style = style_by_position
) -> None:
    """The mean over rounds, or days where the rate is known, with the band that holds 90 % of the runs."""
    rounds = np.unique(np.linspace(1, result.horizon, min(result.horizon, _POINTS)).astype(np.int64))
    unit = result.per_day or 1.0
    for position, policy in enumerate(result.policies):
        values = _read_curves(result, policy, quantity, rounds)
        low, high = np.quantile(values, [0.05, 0.95], axis=0)
        line = style(position, policy)
        axes.fill_between(rounds / unit, low, high, color=line["color"], alpha=0.15, linewidth=0)
        axes.plot(rounds / unit, values.mean(axis=0), label=escape_label(policy), **line)
    xlabel = "round" if result.per_day is None else f"day, at {result.per_day:,.6g} decisions a day"
    axes.set(
        title=title, xlabel=xlabel, ylabel=LABELS[quantity][result.per_day is not None], xlim=(0, result.horizon / unit)
    )
    axes.set_ylim(bottom=0)


def _read_curves(result: Result, policy: str, quantity: Quantity, rounds: Integers) -> Array:
    curves = result.regret(policy) if quantity == "regret" else result.conversions(policy)
    return np.asarray(curves[:, rounds - 1], np.float64)


def plot_result(
    result: Result, *, title: str | None = None, quantity: Quantity = "regret", style: Style = style_by_position
) -> Figure:
    """One panel with its legend. Without a title of its own it has the finding for one."""
    made, (axes,) = make_figure(width=7.0, height=4.6)
    title = escape_label(write_finding(result, quantity)) if title is None else title
    draw_result(axes, result, title=title, quantity=quantity, style=style)
    runs = "1 run" if result.runs == 1 else f"mean, and 5 to 95 %, of {result.runs:,} runs"
    axes.legend(frameon=False, loc="upper left", fontsize=9, title=runs, title_fontsize=9, alignment="left")
    return made


def write_finding(result: Result, quantity: Quantity) -> str:
    """Name the best policy and its figure, and the worst; or say that the two best do not clearly differ."""
    finals = {name: _read_curves(result, name, quantity, np.array([result.horizon]))[:, 0] for name in result.policies}
    ranked = sorted(finals, key=lambda name: float(finals[name].mean()), reverse=quantity == "conversions")
    best, worst = ranked[0], ranked[-1]
    said = _write_amount(result, float(finals[best].mean()), quantity)
    if len(ranked) == 1:
        return f"{best}: {said}"
    gap = finals[ranked[1]] - finals[best]  # run by run: all met the same random numbers
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.inf
    if abs(gap.mean()) <= 2.0 * error:
        return f"{best}: {said}; {ranked[1]} does not clearly differ, {finals[ranked[1]].mean():,.0f}"
    return f"{best} does best: {said}; {worst}: {finals[worst].mean():,.0f}"


def _write_amount(result: Result, amount: float, quantity: Quantity) -> str:
    if result.per_day is None:
        what = "regret of" if quantity == "regret" else "conversions:"
        return f"{what} {amount:,.0f} in {result.horizon:,} rounds"
    what = "lost sales" if quantity == "regret" else "sales"
    return f"{amount:,.0f} {what} in {result.horizon / result.per_day:,.3g} days"
