"""Titles of pictures say the finding, with its numbers."""

import re

import numpy as np
import polars as pl

import latecomer as lc
from latecomer.experiments.arena.plot import plot_comparison, plot_random_worlds
from latecomer.experiments.paper import experiments as paper
from latecomer.experiments.paper.sections import _compare_ends
from latecomer.experiments.plots import plot_coverage, plot_density, plot_regret_panels, plot_sweep


def test_density_says_when_half_of_the_conversions_have_come() -> None:
    grid = np.linspace(0.0, 6.0, 601)
    density = np.exp(-0.5 * ((grid - 4.0) / 0.2) ** 2)  # symmetric about 10,000 seconds
    (axes,) = plot_density(grid, density, source="made").axes
    assert axes.get_title() == "Half of the conversions come within 2.78 h (made)"


def test_coverage_says_how_often_and_how_loosely_the_set_covers() -> None:
    rounds, ratios = np.arange(1.0, 4.0), {"median run": np.full(3, 0.05), "worst run": np.array([0.1, 0.125, 0.12])}
    left, right = plot_coverage(rounds, np.array([1.0, 1.0, 0.97]), ratios, floor=0.8).axes
    assert left.get_title() == "The set covers in 97% of the runs"
    assert right.get_title() == "At most 12% of the radius is used"


def test_random_worlds_say_which_policy_does_best() -> None:
    table = pl.DataFrame(
        {"policy": ["a", "a", "b", "b"], "world": [1, 2, 1, 2], "to_best_published": [0.5, 0.5, 2.0, 0.25]}
    )
    (axes,) = plot_random_worlds(table, runs=3).axes
    assert axes.get_title() == (
        "a does best: 0.50 of the regret of the best published policy; 2 random worlds, 3 runs each"
    )


def test_a_comparison_says_which_policy_loses_least_of_those_that_can_be_had() -> None:
    """The learner without delay has no time: it cannot be had, and is not drawn."""
    names, times = ["a", "without delay", "b"], [90.0, None, 2.0]
    table = pl.DataFrame({"policy": names, "mean": [30.0, 5.0, 20.0], "runs": [10, 100, 100], "microseconds": times})
    (axes,) = plot_comparison(table.with_columns(pl.lit("B").alias("world"))).axes
    assert axes.get_title() == "b loses least: B, 100 runs"
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["1  b: 20", "2  a: 30 (10 runs)"]


def test_panels_have_their_finding_above_them_and_their_worlds_in_their_titles() -> None:
    world = lc.World(theta=[0.9, 0.1], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=2))
    result = lc.simulate(world, {"at random": lc.Uniform(2, 5)}, horizon=10, runs=2, seed=0)
    figure = plot_regret_panels({"B": result, "U": result}, columns=2, title="chance loses 4 of 10")
    assert figure.get_suptitle() == "chance loses 4 of 10"
    assert [axes.get_title().strip("\u200b") for axes in figure.axes] == ["B", "U"]


def test_a_sweep_says_what_its_ends_cost_and_its_title_fits_with_long_numbers() -> None:
    world = lc.World(theta=[0.9, 0.1], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=2))
    policies = {paper.OURS: lc.recommended(2, 5), paper.UNIFORM: lc.Uniform(2, 5)}
    results = [lc.simulate(world, policies, horizon=10, runs=2, seed=seed) for seed in (0, 1)]
    title = _compare_ends("a mean delay", dict.fromkeys((1, 1000)), results)  # type: ignore[arg-type]
    costs = [results[0].final(paper.OURS), results[1].final(paper.OURS), results[1].final(paper.UNIFORM)]
    assert re.findall(r"\d+", title) == ["1", f"{costs[0].mean():.0f}", "1000", *(f"{c.mean():.0f}" for c in costs[1:])]
    made = plot_sweep([1, 1000], results, title=re.sub(r"\d+", "1000", title), xlabel="mean delay")
    made.draw_without_rendering()
    box, inside = made.axes[0].title.get_window_extent(), made.bbox
    assert inside.x0 <= box.x0 <= box.x1 <= inside.x1
    assert inside.y0 <= box.y0 <= box.y1 <= inside.y1
