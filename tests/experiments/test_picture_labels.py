"""Labels of pictures: none covers another, a policy has one number, and an axis has marks enough."""

from datetime import timedelta
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from matplotlib.text import Annotation

import latecomer as lc
from latecomer.experiments.arena.plot import plot_comparison


def test_a_policy_has_one_number_in_all_panels_and_labels_do_not_collide() -> None:
    rng, names = np.random.default_rng(0), [f"policy {number}" for number in range(30)]
    tables = []
    for world in ("B", "arms"):
        means, times = 300.0 * 1.3 ** rng.standard_normal(30), 150.0 * 1.2 ** rng.standard_normal(30)
        tables.append(pl.DataFrame({"world": world, "policy": names, "mean": means, "runs": 10, "microseconds": times}))
    made = plot_comparison(pl.concat(tables))
    made.draw_without_rendering()
    legends = []
    for axes in made.axes:
        labels = [child for child in axes.texts if isinstance(child, Annotation)]
        assert len(labels) == 30
        boxes = [super(Annotation, label).get_window_extent() for label in labels]  # without the line to the point
        assert not [1 for one, other in combinations(boxes, 2) if one.overlaps(other)]
        legend = axes.get_legend()
        assert legend is not None
        legends.append({text.get_text().split(":")[0] for text in legend.get_texts()})
    assert legends[0] == legends[1]


@pytest.mark.parametrize("delay", [600.0, 3600.0])
def test_the_axis_of_the_bound_has_several_marks(delay: float) -> None:
    law = lc.delays.LogNormal(median=delay, sigma=0.3)
    advice = lc.advise_window(law, rate=100, dim=2, rounds=300, runs=2, horizon=timedelta(days=2), progress=False)
    feared = advice.plot().axes[2]
    low, high = feared.get_ylim()
    assert sum(low <= tick <= high for tick in feared.get_yticks()) >= 2
