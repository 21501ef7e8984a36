"""The arena as one picture: policies by worlds; or, of a single world, the regret of each policy."""

import numpy as np
import polars as pl
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from latecomer.core.state import Array
from latecomer.experiments.plots import COLOURS, make_figure
from latecomer.experiments.point_labels import label_points


def plot_arena(table: pl.DataFrame, *, runs: int) -> Figure:
    """Draw a table of scores: bars for one world, a grid of ratios for several."""
    return _plot_bars(table, runs=runs) if table["world"].n_unique() == 1 else _plot_grid(table, runs=runs)


def _plot_bars(table: pl.DataFrame, *, runs: int) -> Figure:
    """Mean regret with its standard error, the least on top, and the 95th percentile as a tick."""
    table = table.sort("mean", descending=True)
    places = range(len(table))
    means, tails = table["mean"].to_list(), table["p95"].to_list()
    made, (axes,) = make_figure(width=7.0, height=1.5 + 0.27 * len(table))
    axes.barh(places, means, xerr=table["standard_error"].to_list(), color=COLOURS[0], ecolor="black", height=0.7)
    axes.plot(tails, places, "|", color=COLOURS[1], markersize=11, markeredgewidth=2, label="95th percentile")
    named = zip(table["policy"].to_list(), means, strict=True)
    axes.set_yticks(places, [f"{policy}   {mean:.1f}" for policy, mean in named], fontsize=8)
    axes.set_axisbelow(True)
    axes.set_xlim(left=0)
    axes.set_xlabel("regret at the horizon: mean ± standard error", fontsize=8)
    best = table.row(-1, named=True)
    axes.set_title(f"{best['policy']} loses least, {best['mean']:.1f}: {best['world']}, {runs} runs", fontsize=10)
    axes.legend(fontsize=8, loc="upper right")
    return made


def _plot_grid(table: pl.DataFrame, *, runs: int) -> Figure:
    """A cell is mean regret over that of the world's best published policy: below 1 is better, on a log scale.

    Where no published policy was played it is over that of the learner without delay.
    """
    column, reference = "to_best_published", "the best published policy"
    if table[column].is_nan().all():
        column, reference = "to_undelayed", "a learner without delay"
    worlds, policies = (table[name].unique(maintain_order=True).to_list() for name in ("world", "policy"))
    ratios = np.full((len(policies), len(worlds)), np.nan)
    for world, policy, ratio in table.select("world", "policy", column).iter_rows():
        ratios[policies.index(policy), worlds.index(world)] = ratio
    width = max(7.0, 3.2 + 0.72 * len(worlds))
    made, (axes,) = make_figure(width=width, height=2.2 + 0.31 * len(policies))
    axes.grid(visible=False)
    shown = np.log2(np.clip(ratios, 1 / 16, 16))
    image = axes.imshow(shown, cmap="RdBu_r", norm=TwoSlopeNorm(0.0, -4.0, 4.0), aspect="auto")
    for (i, j), ratio in np.ndenumerate(ratios):
        if np.isfinite(ratio):
            ink = "white" if abs(shown[i, j]) > 2.6 else "black"
            axes.text(j, i, f"{ratio:.{2 if ratio < 9.95 else 0}f}", ha="center", va="center", fontsize=7, color=ink)
    axes.set_xticks(range(len(worlds)), worlds, rotation=38, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set_yticks(range(len(policies)), policies, fontsize=8)
    finding = _write_finding(ratios, policies, reference)
    made.suptitle(f"{finding}\nMean regret relative to {reference}, {runs} runs", fontsize=10)
    bar = made.colorbar(image, ax=axes, fraction=0.35 / width, pad=0.1 / width)
    bar.set_ticks([-4, -2, 0, 2, 4], labels=["1/16", "1/4", "1", "4", "16"], fontsize=8)
    return made


def plot_comparison(table: pl.DataFrame) -> Figure:
    """Draw regret against the time of a round, a panel for each world: the lower and the further left the better."""
    names = table["world"].unique(maintain_order=True).to_list()
    made, panels = make_figure(len(names), width=5.6, height=6.4)
    numbers: dict[str, int] = {}
    """The number of each policy, the same in every panel: by its place in the first that has it."""
    points: list[list[tuple[float, float, str]]] = []
    for axes, world in zip(panels, names, strict=True):
        scores = table.filter(pl.col("world") == world, pl.col("microseconds").is_not_null()).sort("mean")
        most = int(scores["runs"].max())  # type: ignore[arg-type] # a table has rows
        points.append([])
        for policy, mean, micro, runs in scores.select("policy", "mean", "microseconds", "runs").iter_rows():
            number = numbers.setdefault(policy, len(numbers) + 1)
            axes.plot(micro, mean, "o", color=COLOURS[0] if runs == most else COLOURS[1], markersize=4)
            points[-1].append((micro, mean, f"{number}"))
            axes.plot([], [], " ", label=f"{number}  {policy}: {mean:.0f}" + (f" ({runs} runs)" if runs < most else ""))
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
        axes.set_xlabel("processor time of a round, µs", fontsize=8)
        axes.set_ylabel("mean regret at the horizon", fontsize=8)
        axes.set_title(f"{scores['policy'][0]} loses least: {world}, {most} runs", fontsize=10)
        axes.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, handlelength=0, frameon=False)
    made.draw_without_rendering()  # the panels have their sizes
    for axes, marked in zip(panels, points, strict=True):
        label_points(axes, marked, size=6)
    return made


def _write_finding(ratios: Array, policies: list[str], reference: str) -> str:
    """Name the policy with the least geometric mean of the ratios of all worlds."""
    played = np.isfinite(ratios).all(axis=1)
    if not played.any():
        return "No policy was played in every world"
    means = np.where(played, np.exp(np.log(np.maximum(ratios, 1e-12)).mean(axis=1)), np.inf)
    best = int(means.argmin())
    return f"{policies[best]} does best: {means[best]:.2f} of the regret of {reference} (geometric mean of worlds)"


def plot_random_worlds(table: pl.DataFrame, *, runs: int) -> Figure:
    """Draw each policy's ratios to the best published policy, from its best world to its worst, on a log scale."""
    column, reference = "to_best_published", "the best published policy"
    if table[column].is_nan().all():
        column, reference = "to_undelayed", "a learner without delay"
    made, (axes,) = make_figure(width=7.5, height=4.6)
    means = table.group_by("policy").agg(pl.col(column).clip(1e-3).log().mean().exp()).sort(column)
    best = f"{means['policy'][0]} does best: {means[column][0]:.2f} of the regret of {reference}"
    for place, ((policy,), scores) in enumerate(table.group_by("policy", maintain_order=True)):
        ratios = np.sort(np.maximum(scores[column].to_numpy(), 1e-3))
        shares = (np.arange(len(ratios)) + 0.5) / len(ratios)
        axes.plot(shares * 100.0, ratios, label=str(policy), color=COLOURS[place % len(COLOURS)], linewidth=1.4)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("% of the worlds, each policy's best first", fontsize=8)
    axes.set_ylabel(f"mean regret over that of {reference}", fontsize=8)
    axes.set_title(f"{best}; {table['world'].n_unique()} random worlds, {runs} runs each", fontsize=9)
    axes.legend(fontsize=7, loc="upper left")
    return made
