"""The section beyond the paper: the policy that we recommend, in the paper's own worlds."""

import numpy as np
import polars as pl

from latecomer.experiments import plots
from latecomer.experiments.paper import experiments as paper
from latecomer.experiments.paper.report import Section
from latecomer.experiments.paper.setting import Setting, curve_table, final_table

NAME = "beyond-the-paper"
KEY = ("actions", "window", "mean_delay")


def report_beyond_the_paper(setting: Setting) -> Section:
    """Play `recommended` in the worlds of Figures 1 and 3."""
    results, tables, data = {}, [], []
    by_law = {law: paper.make_beyond(law, setting.heavy_delays()) for law in paper.LAWS}
    for pair in zip(*by_law.values(), strict=True):  # the two action laws of a panel side by side
        for law, experiment in zip(by_law, pair, strict=True):
            window, mean = int(experiment.policies[paper.OURS].window), round(experiment.world.delays.mean)
            key = dict(zip(KEY, (law, window, mean), strict=True))
            result = setting.play(experiment, f"beyond the paper, actions {law}, m = {window}, mean delay {mean}")
            results[f"{law}: m = {window}, μ = {mean:,}"] = result
            tables.append(final_table(result, **key))
            data.append(curve_table(result, **key))
    table = _compare(pl.concat(tables))
    below = int((table["ours_to_best_of_the_paper"] < 1).sum())
    title = f"recommended loses less than the best of the paper's policies in {below} of {len(table)} worlds"
    return Section(
        NAME,
        "Beyond the paper: the policy that Latecomer recommends",
        _write_text(table),
        plots.plot_regret_panels(results, columns=2, title=title),
        table,
        pl.concat(data),
    )


def _compare(table: pl.DataFrame) -> pl.DataFrame:
    """Return a row a world: the means, ours with its standard error, and its ratio to the best of the paper's."""
    errors = table.filter(policy=paper.OURS).select(*KEY, pl.col("standard_error").alias("its_standard_error"))
    means = table.pivot(on="policy", index=KEY, values="mean").join(errors, on=KEY, maintain_order="left")
    best = pl.min_horizontal(paper.COMPARED)
    return means.select(
        *KEY,
        paper.OURS,
        "its_standard_error",
        *paper.COMPARED,
        paper.UNIFORM,
        (pl.col(paper.OURS) / best).alias("ours_to_best_of_the_paper"),
        (pl.col(paper.OURS) / pl.col(paper.UNIFORM)).alias("ours_to_uniform"),
    )


def _write_text(table: pl.DataFrame) -> str:
    ratios, shares = table["ours_to_best_of_the_paper"].to_numpy(), table["ours_to_uniform"].to_numpy()
    return f"""
    This section is not a reproduction. latecomer.recommended is our own policy, and what Latecomer tells people to
    use; it is drawn here, and in the two sweeps above, in the paper's worlds and on the same random numbers.

    The paper's policies take silence for an answer and widen their exploration for what may still come.
    "recommended" counts a silent round only as far as its feedback should have come by its age, with a delay curve
    that it estimates from its own conversions; so there is nothing to widen for. It samples, with a Bernoulli's
    variance. No theorem covers it.

    It ends below the best of the paper's policies, as stated or as released, in {(ratios < 1).sum()} of
    {len(ratios)} worlds, at {np.exp(np.log(ratios).mean()):.2f} of that one's regret (geometric mean;
    {ratios.min():.2f} at best, {ratios.max():.2f} at worst), and at {shares.min():.2f} to {shares.max():.2f} of
    uniform play's.

    Do not read more into it than it says. Its constants are fixed, but they were chosen over the worlds of the
    arena, and these are among them. And θ points where the mean action points in all of the paper's worlds, which
    suits its prior. "latecomer arena" plays it, and all others, in worlds that are less kind.
    """
