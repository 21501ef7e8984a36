"""Draws docs/pictures/open-question.svg, regret against τ: `python scripts/draw_open_question.py FOLDER`.

Plays the points of `latecomer.experiments.paper.kept_share` over 10⁶ rounds and fourteen gaps, 10 runs each: half an
hour on two cores. Each point's regret at four horizons is kept in FOLDER, so that the same command goes on where it was
stopped. Prints the tables of docs/explanation/theory/variance-width.md.
"""

import sys
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes

from latecomer.experiments import plots
from latecomer.experiments.paper import kept_share as share
from latecomer.experiments.paper.setting import Setting
from latecomer.pictures import write_picture

HORIZONS = (30_000, 100_000, 300_000, 1_000_000)
GAPS = tuple(round(0.4 / 2 ** (k / 2), 4) for k in range(13, -1, -1))
RUNS = 10
SMALL = 0.2
"""Of the rates that the window keeps none is above 0.16 here, and their variance is about τθ."""
POLICIES = (share.EXACT, share.TIGHT, share.VARIANCE)
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "open-question.svg"


def play_points(folder: Path) -> pl.DataFrame:
    """Play what is not in the folder; return a row for each point, policy and horizon."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = []
    for seed, point in enumerate(share.list_points(horizon=HORIZONS[-1], gaps=GAPS)):
        path = folder / f"{seed}.parquet"
        if not path.exists():
            result = Setting(runs=RUNS, seed=seed).play(point.experiment, "")
            key = {"curve": point.curve, "share": point.share, "gap": point.gap}
            rows = result.regret_by_round(HORIZONS).rename({"round": "horizon"})
            rows.select([pl.lit(value).alias(name) for name, value in key.items()] + [pl.all()]).write_parquet(path)
            print(f"{path}: τ = {point.share}, {point.curve}, gap {point.gap}", flush=True)
        tables.append(pl.read_parquet(path))
    return pl.concat(tables)


def draw(axes: Axes, rows: pl.DataFrame, curve: str) -> None:
    """Draw regret against τ, by policy, with the slope where there is one."""
    slopes = share.fit_slopes(rows)
    for position, policy in enumerate(POLICIES):
        own, slope = rows.filter(curve=curve, policy=policy), slopes[curve, policy]
        axes.plot(own["share"], own["mean"], marker="o", markersize=4, label=policy, **plots.line_style(position))
        if slope is not None:
            end = own.row(0, named=True)
            axes.annotate(f"  {format_power(slope.value)}", (end["share"], end["mean"]), fontsize=9, va="center")
    limit = rows.filter(curve=curve).group_by("share").agg(pl.col("uniform_play").max()).sort("share")
    axes.plot(limit["share"], limit["uniform_play"], label="uniform play", **plots.line_style(5))
    axes.set(title=f"{curve}, T = {rows['horizon'].item(0):,}", xlabel="τ, the share that the window keeps")
    axes.set(ylabel="pseudo-regret", xscale="log", yscale="log")
    axes.set_xticks(list(share.SHARES), [f"{each:g}" for each in share.SHARES])
    axes.minorticks_off()
    axes.set_xlim(1.0, 0.013)


def draw_slopes(axes: Axes, slopes: pl.DataFrame) -> None:
    """Draw the slope at the hardest gap against the horizon."""
    for position, policy in enumerate(POLICIES):
        own = slopes.filter(pl.col("slope").is_not_null(), curve=share.HARDEST_GAP, policy=policy)
        style = plots.line_style(position)
        axes.errorbar(own["horizon"], own["slope"], yerr=own["error"], marker="o", markersize=4, **style)
    for level, name in ((-0.5, "the lower bound's, −½"), (-1.0, "the paper's upper bound's, −1")):
        axes.axhline(level, color="#888888", linewidth=0.8, linestyle=":")
        axes.text(HORIZONS[0], level - 0.01, name, fontsize=8, va="top", color="#555555")
    axes.set(title="slope at the hardest gap", xlabel="horizon T", ylabel="exponent of τ", xscale="log")


def fit(hardest: dict[int, pl.DataFrame]) -> pl.DataFrame:
    """Fit slopes by horizon, curve and policy: over all τ, and over those at which the variance is about τθ."""
    rows = []
    for T, table in hardest.items():
        slopes, small = share.fit_slopes(table), share.fit_slopes(table.filter(pl.col("share") <= SMALL))
        for (curve, policy), slope in slopes.items():
            few = small[curve, policy]
            key: dict[str, object] = {"horizon": T, "curve": curve, "policy": policy}
            own: dict[str, object] = {"slope": slope and slope.value, "error": slope and slope.error}
            rows.append({**key, **own, "slope_small": few and few.value, "error_small": few and few.error})
    return pl.DataFrame(rows).sort("curve", "policy", "horizon")


def main(folder: Path) -> None:
    """Play, print and draw."""
    every = play_points(folder)
    hardest = {T: share.find_hardest(every.filter(horizon=T)) for T in HORIZONS}
    table = fit(hardest)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=40, float_precision=3):
        print(table)
        for T in (HORIZONS[0], HORIZONS[-1]):
            print(hardest[T].select("curve", "policy", "share", "gap", "mean", "standard_error", "uniform_play"))
    figure, axes = plots.make_figure(3, width=4.6, height=4.2)
    figure.suptitle(make_title(table))
    draw(axes[0], hardest[HORIZONS[0]], share.FIXED_GAP)
    draw(axes[1], hardest[HORIZONS[-1]], share.HARDEST_GAP)
    draw_slopes(axes[2], table)
    plots.add_shared_legend(figure, axes[0])
    write_picture(figure, PICTURE, suffix=".svg")
    write_picture(figure, folder / "open-question.png", suffix=".png")


def make_title(table: pl.DataFrame) -> str:
    """Say the finding."""
    last = table.filter(curve=share.HARDEST_GAP, horizon=HORIZONS[-1])
    by_policy = dict(last.select("policy", "slope").iter_rows())
    variance, tight = (format_power(by_policy[name]) for name in (share.VARIANCE, share.TIGHT))
    return f"At the hardest gap regret goes like {variance} with the variance-aware width, {tight} with the tight one"


def format_power(slope: float) -> str:
    """Write a power of τ."""
    return rf"$\tau^{{{slope:.2f}}}$"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
