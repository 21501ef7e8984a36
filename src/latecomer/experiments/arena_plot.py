"""The arena as one picture: policies by worlds, the regret relative to the best published policy."""

import numpy as np
import polars as pl
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from latecomer.experiments.plots import figure


def arena_figure(table: pl.DataFrame, *, runs: int) -> Figure:
    """A cell is mean regret over that of the world's best published policy: below 1 is better, on a log scale."""
    worlds, policies = (table[name].unique(maintain_order=True).to_list() for name in ("world", "policy"))
    ratios = np.full((len(policies), len(worlds)), np.nan)
    for world, policy, ratio in table.select("world", "policy", "to_best_published").iter_rows():
        ratios[policies.index(policy), worlds.index(world)] = ratio
    made, (axes,) = figure(width=2.6 + 0.72 * len(worlds), height=1.9 + 0.31 * len(policies))
    axes.grid(visible=False)
    shown = np.log2(np.clip(ratios, 1 / 16, 16))
    image = axes.imshow(shown, cmap="RdBu_r", norm=TwoSlopeNorm(0.0, -4.0, 4.0), aspect="auto")
    for (i, j), ratio in np.ndenumerate(ratios):
        ink = "white" if abs(shown[i, j]) > 2.6 else "black"
        axes.text(
            j, i, f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}", ha="center", va="center", fontsize=7, color=ink
        )
    axes.set_xticks(range(len(worlds)), worlds, rotation=38, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set_yticks(range(len(policies)), policies, fontsize=8)
    axes.set_title(f"Mean regret relative to the best published policy, {runs} runs", fontsize=10)
    bar = made.colorbar(image, ax=axes, fraction=0.02, pad=0.01)
    bar.set_ticks([-4, -2, 0, 2, 4], labels=["1/16", "1/4", "1", "4", "16"])
    return made
