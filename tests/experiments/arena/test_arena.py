"""The arena: its worlds, a small world, and the ratios by hand."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.experiments.arena import worlds
from latecomer.experiments.arena.arena import (
    POLICIES,
    PUBLISHED,
    RECOMMENDED,
    choose_policies,
    choose_worlds,
    run_world,
    score_table,
)
from latecomer.experiments.arena.floor import KNOWN, UNDELAYED, KnownDelayLinTS, make_floor
from latecomer.experiments.arena.plot import plot_arena
from latecomer.experiments.arena.worlds import ArenaWorld, load_worlds
from latecomer.experiments.paper.experiments import RELEASED_UCB, TS, UNIFORM
from latecomer.policies.recommended import constants

WORLD = lc.World(theta=[0.3, 0.8], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=5))
ROW = ArenaWorld("small", "contexts", WORLD, horizon=60, window=8)


def test_load_worlds_reads_every_world() -> None:
    found = load_worlds()
    assert list(found)[:6] == [f"{law} {panel}" for law in "BU" for panel in ("(100, 100)", "(500, 100)", "(100, 500)")]
    assert len(found) >= 16
    for name, row in found.items():
        assert (row.name, row.kind in worlds.KINDS, row.horizon >= 2000, row.window >= 1) == (name, True, True, True)
    assert [name for name, row in found.items() if row.kind == "paper"] == list(found)[:6]
    for name, row in found.items():  # the same arms in every round
        sets = row.world.block(np.random.default_rng(0), 1024, 1024).sets
        assert (row.kind == "fixed") == bool((sets == sets[:1]).all()), name


def test_arena_has_its_kinds_of_worlds() -> None:
    found = load_worlds()
    assert {row.window for name, row in found.items() if "heavy tail" in name} == {2000, 10_000}
    assert np.unique(found["basis arms, .03 and .06"].world.theta).tolist() == [0.03, 0.06]
    means = found["low rates, 1 to 10 %"].world.block(np.random.default_rng(0), 1024).means
    assert 0.01 <= means.min() <= means.max() <= 0.1
    assert found["d = 30, K = 100"].world.block(np.random.default_rng(0), 2).sets.shape == (2, 100, 30)
    assert isinstance(found["delays that drift"].world.delays, lc.delays.ChangePoint)
    assert found["delays that drift"].world.delays.change < found["delays that drift"].horizon
    assert isinstance(found["arms that come and go"].world.actions, lc.actions.Rotating)
    assert found["logistic rewards"].world.reward == "logistic"
    assert sum(row.window >= 10 * row.horizon for row in found.values()) == 2
    assert {RECOMMENDED, UNIFORM, *PUBLISHED} <= set(POLICIES)
    assert found["B, m = 10, mean delay 200"].world.delays.cdf(10) < 0.06
    assert found["1,000 actions"].world.block(np.random.default_rng(0), 2).sets.shape[1] == 1000
    assert found["rates of 0.1 %"].world.theta.mean() == pytest.approx(0.001)
    assert np.count_nonzero(found["one of 16 features"].world.theta) == 1
    changing = {name: row.world.schedule.change for name, row in found.items() if row.world.schedule}
    assert sorted(changing.values()) == ["drift", "jump", "jump"]
    assert all(name.startswith(f"tastes that {change}") for name, change in changing.items())
    leads = found["leads"].world
    assert leads.block(np.random.default_rng(0), 1024).means.mean() == pytest.approx(0.13, abs=0.01)
    assert leads.delays.cdf(40 * 13) == pytest.approx(0.5, abs=0.05)  # the data's median is 12 to 13 days


@pytest.mark.parametrize("missing", ["kind", "horizon", "window"])
def test_world_of_the_arena_names_the_key_that_it_lacks(missing: str) -> None:
    table: dict[str, object] = {"kind": "fixed", "horizon": 10, "window": 3, "theta": [0.5]}
    table |= {"actions": {"law": "unit vectors"}, "delays": {"law": "fixed", "delay": 1}}
    assert worlds.parse_row("mine", dict(table)).world.dim == 1
    del table[missing]
    with pytest.raises(InputError, match=f"the arena's world 'mine' needs {missing}"):
        worlds.parse_row("mine", table)


def test_run_world_is_a_simulation_on_the_same_numbers() -> None:
    makers: dict[str, Callable[[int, int], Any]] = {name: POLICIES[name] for name in (TS, "MaturedLinTS", UNIFORM)}
    finals = run_world(ROW, makers, runs=3, seed=4)
    assert list(finals) == [TS, "MaturedLinTS", UNIFORM, KNOWN, UNDELAYED]
    policies = {name: make(2, 8) for name, make in makers.items()}
    direct = lc.simulate(WORLD, policies, horizon=60, runs=3, seed=4, progress=False)
    for name in makers:
        np.testing.assert_array_equal(finals[name], direct.final(name))
    at_once = lc.World(theta=WORLD.theta, actions=WORLD.actions, delays=lc.delays.Fixed(0))
    learner = {UNDELAYED: lc.recommended(2, 0)}
    undelayed = lc.simulate(at_once, learner, horizon=60, runs=3, seed=4, progress=False)
    np.testing.assert_array_equal(finals[UNDELAYED], undelayed.final(UNDELAYED))
    knowing = {KNOWN: KnownDelayLinTS(2, 8, WORLD.delays, **constants(2))}
    known = lc.simulate(WORLD, knowing, horizon=60, runs=3, seed=4, progress=False)
    np.testing.assert_array_equal(finals[KNOWN], known.final(KNOWN))


def test_learner_without_delay_plays_the_tastes_that_change() -> None:
    row = load_worlds()["tastes that drift, contexts"]
    world, _ = make_floor(row.world, row.window)[UNDELAYED]
    assert (repr(world.schedule), world.schedule.change) == (repr(row.world.schedule), "drift")  # type: ignore[union-attr]


FINALS = {
    RECOMMENDED: np.array([1.0, 2.0, 3.0, 2.0]),
    TS: np.array([4.0, 4.0, 4.0, 12.0]),
    RELEASED_UCB: np.array([2.0, 6.0, 4.0, 4.0]),
    UNIFORM: np.array([8.0, 8.0, 8.0, 8.0]),
    UNDELAYED: np.array([1.0, 1.0, 1.0, 1.0]),
}


def test_score_table_has_the_ratios_by_hand() -> None:
    """Means 2, 6, 4, 8, 1: the best published is the released UCB, by its mean."""
    table = score_table(ROW, FINALS)
    assert table["policy"].to_list() == list(FINALS)
    assert set(table["world"]) == {"small"}
    assert set(table["best_published"]) == {RELEASED_UCB}
    assert table["runs"].to_list() == [4] * 5
    assert table["mean"].to_list() == [2.0, 6.0, 4.0, 8.0, 1.0]
    assert table["to_best_published"].to_list() == [0.5, 1.5, 1.0, 2.0, 0.25]
    assert table["to_uniform"].to_list() == [0.25, 0.75, 0.5, 1.0, 0.125]
    assert table["to_undelayed"].to_list() == [2.0, 6.0, 4.0, 8.0, 1.0]
    # quantiles between order statistics: 2 + 0.85, 4 + 0.85·8, 4 + 0.85·2
    np.testing.assert_allclose(table["p95"], [2.85, 10.8, 5.7, 8.0, 1.0], rtol=1e-12)
    np.testing.assert_allclose(table["p95_to_best_published"], np.array([2.85, 10.8, 5.7, 8.0, 1.0]) / 5.7, rtol=1e-12)
    np.testing.assert_allclose(table["standard_error"][0], np.sqrt(2 / 3) / 2, rtol=1e-12)


def test_score_table_without_a_reference_has_no_ratio() -> None:
    table = score_table(ROW, {name: FINALS[name] for name in (RECOMMENDED, UNDELAYED)})
    assert np.isnan(table["to_best_published"].to_numpy()).all()
    assert np.isnan(table["to_uniform"].to_numpy()).all()
    assert set(table["best_published"]) == {""}
    none = score_table(ROW, {**FINALS, UNDELAYED: np.zeros(4), RELEASED_UCB: np.zeros(4)})
    assert np.isnan(none["to_undelayed"].to_numpy()).all()
    assert np.isnan(none["to_best_published"].to_numpy()).all()


def test_a_picture_of_worlds_has_a_cell_for_each_pair() -> None:
    other = ArenaWorld("other", "contexts", WORLD, horizon=60, window=8)
    made = plot_arena(pl.concat([score_table(ROW, FINALS), score_table(other, FINALS)]), runs=4)
    texts = [text.get_text() for text in made.axes[0].texts]
    assert texts == ["0.50", "0.50", "1.50", "1.50", "1.00", "1.00", "2.00", "2.00", "0.25", "0.25"]
    assert "the best published policy, 4 runs" in made.get_suptitle()


def test_a_picture_without_published_policies_compares_with_no_delay() -> None:
    other = ArenaWorld("other", "contexts", WORLD, horizon=60, window=8)
    finals = {name: FINALS[name] for name in (RECOMMENDED, UNDELAYED)}
    made = plot_arena(pl.concat([score_table(ROW, finals), score_table(other, finals)]), runs=4)
    assert [text.get_text() for text in made.axes[0].texts] == ["2.00", "2.00", "1.00", "1.00"]
    assert "a learner without delay" in made.get_suptitle()


def test_a_picture_of_one_world_has_a_bar_for_each_policy() -> None:
    """The longest name is not cut off, nor is the title: everything lies inside of the picture."""
    made = plot_arena(score_table(ROW, FINALS), runs=4)
    axes = made.axes[0]
    assert len(axes.patches) == len(FINALS)
    assert [label.get_text().split("   ")[0] for label in axes.get_yticklabels()][-1] == UNDELAYED  # least, on top
    assert axes.get_title().endswith(": small, 4 runs")
    made.draw_without_rendering()
    inside = made.bbox
    for text in (axes.title, *axes.get_yticklabels()):
        box = text.get_window_extent()
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1
        assert inside.y0 <= box.y0 <= box.y1 <= inside.y1


def test_unknown_names_are_refused_before_anything_is_played() -> None:
    with pytest.raises(InputError, match="world must be one of 'B "):
        choose_worlds(["B (100, 100)", "nowhere"])
    with pytest.raises(InputError, match="policy must be one of 'rec"):
        choose_policies(["Greedy", "nobody"])


class Interrupted:
    """An engine in which Ctrl-C comes after the first run."""

    def map(self, play: Callable[[int], Any], runs: int) -> Iterator[tuple[int, Any]]:
        yield 0, play(0)
        raise KeyboardInterrupt


def test_a_world_counts_whole_or_not_at_all() -> None:
    engine: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run_world(ROW, {UNIFORM: POLICIES[UNIFORM]}, runs=3, seed=0, engine=engine)
