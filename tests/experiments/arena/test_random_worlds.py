"""Random worlds: the family, the summary by hand, and results that are kept."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import latecomer as lc
from latecomer.errors import InputError, LatecomerError
from latecomer.experiments.arena.random_worlds import COUNTS, DIMS, HORIZONS, LEAST_CONVERSIONS, draw_world, draw_worlds
from latecomer.experiments.arena.result_folder import ResultFolder
from latecomer.experiments.arena.summary import summarise
from latecomer.experiments.arena.worlds import ArenaWorld, load_worlds

WORLD = lc.World(theta=[0.3, 0.8], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=5))
ROW = ArenaWorld("random 007: small", "contexts", WORLD, horizon=60, window=8)


def test_a_world_depends_on_the_seed_and_its_number_alone() -> None:
    again = draw_world(5, 3)
    first = draw_worlds(4, seed=5)[3]
    assert (first.name, first.horizon, first.window) == (again.name, again.horizon, again.window)
    np.testing.assert_array_equal(first.world.theta, again.world.theta)
    assert draw_world(6, 3).name != first.name


def test_worlds_are_of_the_stated_family() -> None:
    rows = draw_worlds(24, seed=0)
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        block = row.world.block(np.random.default_rng(1), 256)
        assert row.world.dim in DIMS
        assert row.horizon in HORIZONS
        assert block.offers.shape[1] in (*COUNTS, row.world.dim)
        assert 1 <= row.window <= 30_000
        assert 0.0 <= block.means.min() <= block.means.max() <= 1.0
        seen = row.horizon * block.means.mean() * row.world.delays.cdf(row.window)
        assert seen >= 0.8 * LEAST_CONVERSIONS, row.name
    laws = {type(row.world.actions).__name__ for row in rows}
    assert laws == {"Binary", "Uniform", "Sphere", "UnitVectors", "RandomFixed", "Rotating"}
    assert {type(row.world.delays).__name__ for row in rows} == {"Geometric", "LogNormal", "Pareto", "Mixture"}
    assert {row.world.reward for row in rows} == {"linear", "logistic"}


def test_summary_has_the_figures_by_hand() -> None:
    """Ratios ½ and 2: mean 1¼, geometric mean 1, one of two worlds above 1."""
    table = pl.DataFrame(
        {
            "policy": ["ours", "theirs", "ours", "theirs"],
            "to_best_published": [0.5, 1.0, 2.0, 1.0],
            "p95_to_best_published": [0.4, 1.0, 3.0, 1.0],
            "to_uniform": [0.1, 0.2, 0.9, 1.1],
            "to_undelayed": [1.0, 2.0, 4.0, 8.0],
            "to_known": [1.0, 1.0, 1.21, 1.0],
        }
    )
    theirs, ours = summarise(table).rows(named=True)
    assert (ours["policy"], ours["worlds"], theirs["policy"]) == ("ours", 2, "theirs")
    found = [ours[name] for name in ("mean_ratio", "geometric_mean", "above_one", "worst", "worst_p95", "to_known")]
    np.testing.assert_allclose(found, [1.25, 1.0, 0.5, 2.0, 3.0, 1.1], rtol=1e-12)
    np.testing.assert_allclose([ours["to_undelayed"], ours["worst_to_uniform"]], [2.0, 0.9], rtol=1e-12)
    assert (ours["above_uniform"], theirs["above_uniform"], theirs["above_one"]) == (0, 1, 0.0)


def test_a_folder_keeps_results_by_policy_and_its_parameters(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "worlds", runs=2, seed=0)
    made = {"a": "<A(1)>", "b": "<B(1)>"}
    assert folder.read(ROW, made) == {}
    folder.write(ROW, made, {"a": np.array([1.5, 0.1]), "b": np.array([2.0, 3.0])})
    kept = folder.read(ROW, {"a": "<A(1)>", "b": "<B(2)>", "c": "<C>"})  # b has changed, c is new
    assert list(kept) == ["a"]
    np.testing.assert_array_equal(kept["a"], [1.5, 0.1])
    folder.write(ROW, {"c": "<C>"}, {"c": np.array([4.0, 5.0])})
    assert list(folder.read(ROW, {**made, "c": "<C>"})) == ["a", "b", "c"]
    assert [path.name for path in folder.path.iterdir()] == ["random-007.json"]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, runs=2, seed=0)
    folder.write(ROW, {"a": "<A>"}, {"a": np.array([1.0, 2.0])})
    with pytest.raises(InputError, match="holds results of seed 0, where this is 1: give another --out"):
        ResultFolder(tmp_path, runs=2, seed=1).read(ROW, {})
    other = lc.World(theta=[0.3, 0.7], actions=WORLD.actions, delays=WORLD.delays)
    with pytest.raises(InputError, match="holds results of fingerprint"):
        folder.read(ArenaWorld(ROW.name, ROW.kind, other, ROW.horizon, ROW.window), {})
    (tmp_path / "random-007.json").write_text("{")
    with pytest.raises(LatecomerError, match=r"random-007.json cannot be read: .* remove it"):
        folder.read(ROW, {})


def test_every_named_world_has_a_file_of_its_own(tmp_path: Path) -> None:
    folder, found = ResultFolder(tmp_path, runs=2, seed=0), load_worlds()
    assert len({folder._path_of(row).name for row in found.values()}) == len(found)
