"""Draws docs/pictures/open-question.svg, regret against τ: `python scripts/draw_open_question.py FOLDER`.

Plays the points of `latecomer.experiments.paper.kept_share` over 10⁶ rounds and fourteen gaps, 20 runs each: half an
hour on two cores. Each point's regret at four horizons is kept in FOLDER, so that the same command goes on where it was
stopped. Prints the tables of docs/explanation/theory/variance-width.md.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from latecomer.experiments import plots
from latecomer.experiments.paper import kept_share as share
from latecomer.experiments.paper.setting import Setting
from latecomer.pictures import write_picture

HORIZONS = (30_000, 100_000, 300_000, 1_000_000)
GAPS = tuple(round(0.4 / 2 ** (k / 2), 4) for k in range(13, -1, -1))
RUNS = 20
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


def draw(axes: Axes, rows: pl.DataFrame, slopes: share.Slopes, curve: str) -> None:
    """Draw regret against τ, by policy, with the slope where there is one."""
    for position, policy in enumerate(POLICIES):
        own, slope = rows.filter(curve=curve, policy=policy), slopes[curve, policy]
        label = f"{policy}{'' if slope is None else f': τ^{slope.value:.2f}'}"
        axes.plot(own["share"], own["mean"], marker="o", markersize=4, label=label, **plots.line_style(position))
    limit = rows.filter(curve=curve).group_by("share").agg(pl.col("uniform_play").max()).sort("share")
    axes.plot(limit["share"], limit["uniform_play"], color="#888888", linewidth=0.8, linestyle=":")
    axes.set(title=f"{curve}, T = {rows['horizon'].item(0):,}", xlabel="τ, the share that the window keeps")
    axes.set(ylabel="pseudo-regret", xscale="log", yscale="log")
    axes.set_xticks(list(share.SHARES), [f"{each:g}" for each in share.SHARES])
    axes.minorticks_off()
    axes.invert_xaxis()
    axes.legend(frameon=False, fontsize=8, loc="lower right")


def draw_slopes(axes: Axes, slopes: pl.DataFrame) -> None:
    """Draw the slope at the hardest gap against the horizon."""
    for position, policy in enumerate(POLICIES):
        own = slopes.filter(curve=share.HARDEST_GAP, policy=policy).drop_nulls()
        style = plots.line_style(position)
        axes.errorbar(own["horizon"], own["slope"], yerr=own["error"], marker="o", markersize=4, **style)
    for level, name in ((-0.5, "the lower bound's, −½"), (-1.0, "the paper's upper bound's, −1")):
        axes.axhline(level, color="#888888", linewidth=0.8, linestyle=":")
        axes.text(HORIZONS[0], level, name, fontsize=8, va="bottom", color="#555555")
    axes.set(title="slope at the hardest gap", xlabel="horizon T", ylabel="exponent of τ", xscale="log")


def main(folder: Path) -> None:
    """Play, print and draw."""
    every, fitted = play_points(folder), []
    hardest = {T: share.find_hardest(every.filter(horizon=T)) for T in HORIZONS}
    slopes = {T: share.fit_slopes(rows) for T, rows in hardest.items()}
    for T, (curve, policy) in product(HORIZONS, slopes[HORIZONS[0]]):
        slope = slopes[T][curve, policy]
        key = {"horizon": T, "curve": curve, "policy": policy}
        fitted.append({**key, "slope": slope and slope.value, "error": slope and slope.error})
    table = pl.DataFrame(fitted)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=40, float_precision=3):
        print(table.sort("curve", "policy", "horizon"))
        for T in (HORIZONS[0], HORIZONS[-1]):
            print(hardest[T].select("curve", "policy", "share", "gap", "mean", "standard_error", "uniform_play"))
    figure, axes = plots.make_figure(3, width=4.6)
    figure.suptitle(make_title(table))
    draw(axes[0], hardest[HORIZONS[0]], slopes[HORIZONS[0]], share.FIXED_GAP)
    draw(axes[1], hardest[HORIZONS[-1]], slopes[HORIZONS[-1]], share.HARDEST_GAP)
    draw_slopes(axes[2], table)
    np.testing.assert_equal(len(every), len(share.SHARES) * (len(GAPS) + 1) * len(POLICIES) * len(HORIZONS))
    write_picture(figure, PICTURE, suffix=".svg")
    write_picture(figure, folder / "open-question.png", suffix=".png")


def make_title(table: pl.DataFrame) -> str:
    """Say the finding."""
    last = table.filter(curve=share.HARDEST_GAP, horizon=HORIZONS[-1])
    by_policy = dict(last.select("policy", "slope").iter_rows())
    found = (f"τ^{by_policy[name]:.2f}" for name in (share.VARIANCE, share.TIGHT))
    return "At the hardest gap regret goes like {} with the variance-aware width, {} with the tight one".format(*found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
