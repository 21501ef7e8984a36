"""The section since the paper: its three panels with the best of each kind, and its open question."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from latecomer.core.state import Array
from latecomer.experiments import plots
from latecomer.experiments.paper import experiments as paper
from latecomer.experiments.paper import kept_share as share
from latecomer.experiments.paper.report import Section
from latecomer.experiments.paper.setting import Setting, curve_table, final_table
from latecomer.policies.recommended import recommended
from latecomer.simulation.plot import draw_result, escape_label
from latecomer.simulation.result import Result

NAME = "since-the-paper"
SHORTER = 20
"""Runs of a point of the curves against τ_m, at the most: there are 36 points."""
KINDS = {
    paper.TS: "the paper's algorithms as stated",
    paper.RELEASED_UCB: "their released code",
    share.TIGHT: "with a theorem",
    share.VARIANCE: "with a theorem",
    paper.OURS: "heuristics",
    paper.UNIFORM: "no learning",
}
"""The best of each kind."""


def report_since_the_paper(setting: Setting) -> Section:
    """Play the panels of Figure 1 (actions B), and measure regret against τ_m."""
    results, panels = _play_panels(setting)
    points = _play_points(setting)
    hardest = share.find_hardest(points)
    slopes = share.fit_slopes(hardest)
    figure = _draw(results, hardest, slopes)
    table = pl.concat([panels, _tabulate(hardest, slopes)], how="diagonal")
    data = pl.concat([pl.concat(_curves(results)), points], how="diagonal")
    title = "Since the paper: the best of each kind, and the open question"
    return Section(NAME, title, _write_text(hardest, slopes), figure, table, data)


def _play_panels(setting: Setting) -> tuple[dict[str, Result], pl.DataFrame]:
    results, tables = {}, []
    for (window, mean), experiment in paper.make_figure_1("B").items():
        widths = share.make_policies(paper.DIM, window)
        every = {**experiment.policies, **widths, paper.OURS: recommended(paper.DIM, window)}
        chosen = replace(experiment, policies={name: every[name] for name in KINDS})
        result = setting.play(chosen, f"since the paper, m = {window}, mean delay {mean}")
        results[f"B: m = {window}, μ = {mean}"] = result
        tables.append(final_table(result, figure="panel", window=window, mean_delay=mean))
    return results, pl.concat(tables)


def _curves(results: dict[str, Result]) -> list[pl.DataFrame]:
    return [curve_table(result, panel=title) for title, result in results.items()]


def _play_points(setting: Setting) -> pl.DataFrame:
    """Return a row for every policy in every experiment against τ_m."""
    fewer = replace(setting, runs=min(setting.runs, SHORTER))
    tables: list[pl.DataFrame] = []
    for point in share.list_points(quick=setting.quick):
        own = replace(fewer, seed=setting.seed + len(tables))
        result = own.play(point.experiment, f"since the paper, τ = {point.share}, gap {point.gap}")
        key = {"curve": point.curve, "share": point.share, "gap": point.gap, "horizon": point.experiment.horizon}
        tables.append(final_table(result, **key))
    return pl.concat(tables)


def _tabulate(hardest: pl.DataFrame, slopes: share.Slopes) -> pl.DataFrame:
    fitted = pl.DataFrame(
        [
            {"curve": curve, "policy": policy, "slope": slope and slope.value, "slope_error": slope and slope.error}
            for (curve, policy), slope in slopes.items()
        ],
        schema={"curve": pl.String, "policy": pl.String, "slope": pl.Float64, "slope_error": pl.Float64},
    )
    return hardest.with_columns(pl.lit("against τ").alias("figure")).join(fitted, on=["curve", "policy"], how="left")


def _draw(results: dict[str, Result], hardest: pl.DataFrame, slopes: share.Slopes) -> Figure:
    made, axes = plots.make_figure(3, 2)
    ratios = _compare_tight(hardest)
    made.suptitle(
        f"The tight width has {ratios.min():.2f} to {ratios.max():.2f} of the exact width's regret (three arms)"
    )
    for panel, (title, result) in zip(axes, results.items(), strict=False):
        draw_result(panel, result, title=title, style=_style)
    for panel, curve in zip(axes[3:5], (share.FIXED_GAP, share.HARDEST_GAP), strict=True):
        _draw_curve(panel, hardest.filter(pl.col("curve") == curve), curve, slopes)
    _write_legend(axes[5], [*axes[0].get_lines(), *axes[3].get_lines()])
    return made


def _style(position: int, policy: str | None = None) -> dict[str, Any]:
    names = (*KINDS, share.EXACT)
    return plots.line_style(names.index(policy) if policy in names else position)


def _draw_curve(axes: Axes, rows: pl.DataFrame, curve: str, slopes: share.Slopes) -> None:
    for policy in (share.EXACT, share.TIGHT, share.VARIANCE):
        own, slope = rows.filter(pl.col("policy") == policy), slopes[curve, policy]
        axes.plot(own["share"], own["mean"], marker="o", markersize=4, label=escape_label(policy), **_style(0, policy))
        axes.fill_between(
            own["share"], own["low"], own["high"], color=_style(0, policy)["color"], alpha=0.15, linewidth=0
        )
        if slope is not None:
            last = own.row(0, named=True)
            axes.annotate(f"  τ^{slope.value:.2f}", (last["share"], last["mean"]), fontsize=8, va="bottom")
    limit = rows.group_by("share").agg(pl.col("uniform_play").max()).sort("share")
    axes.plot(limit["share"], limit["uniform_play"], color="#888888", linewidth=0.8, linestyle=":")
    horizon = rows["horizon"].item(0)
    axes.set(title=f"three arms, {curve}, T = {horizon:,}", xlabel="τ, the share that the window keeps")
    axes.set(ylabel="pseudo-regret", xscale="log", yscale="log")
    axes.set_xticks(limit["share"].to_list(), [f"{each:g}" for each in limit["share"]])
    axes.minorticks_off()
    axes.invert_xaxis()


def _write_legend(axes: Axes, lines: list[Line2D]) -> None:
    """Name each line once; those that were given no name have one that begins with _."""
    axes.axis("off")
    named = {str(line.get_label()): line for line in lines if not str(line.get_label()).startswith("_")}
    axes.legend(list(named.values()), list(named), loc="center", frameon=False, fontsize=9)


def _compare_tight(hardest: pl.DataFrame) -> Array:
    """Return the tight width's regret as a share of the exact one's, at each τ where the gap stays."""
    rows = hardest.filter(pl.col("curve") == share.FIXED_GAP).pivot(on="policy", index="share", values="mean")
    return np.asarray(rows[share.TIGHT] / rows[share.EXACT])


def _write_text(hardest: pl.DataFrame, slopes: share.Slopes) -> str:
    means = hardest.filter(pl.col("curve") == share.FIXED_GAP).pivot(on="policy", index="share", values="mean")
    few = means.filter(pl.col("share") <= 0.1)
    to_tight = (few[share.VARIANCE] / few[share.TIGHT]).to_numpy()
    to_exact = _compare_tight(hardest)
    fitted = {
        curve: "; ".join(f"{name}: {_say(slopes[curve, name])}" for name in (share.EXACT, share.TIGHT, share.VARIANCE))
        for curve in (share.FIXED_GAP, share.HARDEST_GAP)
    }
    return f"""
    This section is not a reproduction. The first row has the paper's three panels (actions B), with the best of each
    kind: {"; ".join(f"{name} ({kind})" for name, kind in KINDS.items())}.

    The paper bounds the regret from above with 1/τ_m and from below with 1/√τ_m, and leaves open which is right.
    The documentation ("The variance-aware width") proves an upper bound with 1/√τ_m, for
    OTFLinUCB(width="variance"). The second row measures it: three fixed arms, m = {share.WINDOW}, geometric delays of
    which the window keeps the share τ.

    Arms of 0.5, 0.5 and 0.7: the tight width has {to_exact.min():.2f} to {to_exact.max():.2f} of the exact width's
    regret, and for τ of 0.1 and less the variance-aware width has {to_tight.min():.2f} to {to_tight.max():.2f} of the
    tight one's. Slopes of ln R against ln τ with their standard errors, fitted where R is below half of uniform play's:
    {fitted[share.FIXED_GAP]}. To tell a gap Δ of rates from none takes about v/(τΔ)² rounds, each of which costs Δ; v
    is what a width takes for the variance, about τθ in the variance-aware one and ¼ in the others. So where the gap
    stays, regret goes like 1/τ and like 1/τ², and flatter where it comes near uniform play.

    The bounds are about the hardest gap at each τ, about √(v/T)/τ, where regret goes like √(vT)/τ: like 1/√τ and like
    1/τ. Here it is the worst of {", ".join(map(str, share.GAPS))}. Slopes: {fitted[share.HARDEST_GAP]}. Dotted: uniform
    play at the hardest gap; a curve that comes near it says that T is too short for that policy, not that its slope is
    small. The documentation has the same with more gaps and up to a million rounds.
    """


def _say(slope: share.Slope | None) -> str:
    return "too few points" if slope is None else str(slope)
