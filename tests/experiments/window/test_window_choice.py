"""The rule that chooses a window, on costs whose truth is known."""

import numpy as np
import pytest

from latecomer.core.state import Array
from latecomer.durations import format_duration
from latecomer.experiments.window.choice import Comparison, choose_window, compare_windows
from latecomer.experiments.window.grid import LADDER, choose_windows
from latecomer.experiments.window.runs import look_schedule
from latecomer.experiments.window.text import write_finding

DAY = 86_400.0
SHARES = np.array([0.1, 0.4, 0.7, 0.85, 0.95, 1.0])
UNIFORM = 1000.0  # so that costs up to 50 apart are about the same


def compare_noisy(means: list[float], *, runs: int, seed: int, noise: float = 100.0) -> Comparison:
    """Every window has its mean, the luck of the run, which all share, and some noise of its own."""
    rng = np.random.default_rng(seed)
    luck = rng.normal(0.0, 500.0, runs)
    costs = np.array(means)[:, None] + luck + rng.normal(0.0, noise, (len(means), runs))
    return compare_windows(costs, np.full(runs, UNIFORM), SHARES, looks=8)


@pytest.mark.parametrize(
    ("means", "chosen"),
    [
        ([500, 350, 230, 220, 205, 200], 3),  # the shortest that keeps 80 %
        ([210, 205, 200, 205, 210, 215], 3),  # shorter ones cost as little, and keep less
        ([500, 450, 400, 350, 210, 200], 4),  # it costs more than it may: the next that keeps as much
        ([200, 210, 220, 320, 340, 360], 2),  # all that keep so much cost more: the longest of the others
        ([200, 300, 400, 500, 600, 700], 0),
    ],
)
def test_compare_windows_chooses_the_shortest_that_keeps_most_at_the_same_cost(means: list[float], chosen: int) -> None:
    for seed in range(50):
        found = compare_noisy(means, runs=640, seed=seed, noise=50.0)
        assert found.chosen == chosen
        assert found.is_clear
        assert found.keeps_most == (chosen >= 3)


def test_compare_windows_with_few_runs_keeps_the_preferred_window() -> None:
    """The differences are noise: without proof the preferred window stands, and no one calls it clear."""
    for seed in range(200):
        found = compare_noisy([240, 230, 220, 210, 200, 200], runs=10, seed=seed, noise=300.0)
        assert found.chosen == 3
        assert not found.is_clear


def test_compare_windows_errs_in_at_most_five_percent() -> None:
    """5 % of 200 simulations at most err, at the tolerance itself, where it is hardest, over every window and look."""
    means = np.array([250.0, 250.0, 250.0, 250.0, 200.0, 200.0])
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        costs = means[:, None] + rng.normal(0.0, 100.0, (6, 160))
        looks = look_schedule(160)
        dearer = [compare_windows(costs[:, :n], np.full(n, UNIFORM), SHARES, looks=len(looks)).is_dearer for n in looks]
        wrong += bool(np.any(dearer))
    assert wrong <= 10


def test_the_range_is_of_windows_about_the_chosen_one() -> None:
    found = compare_noisy([400, 230, 220, 210, 200, 300], runs=640, seed=0)
    assert found.alike == (1, 4)
    assert found.cheapest == 4
    assert found.tolerance == 50.0
    assert found.is_dearer.tolist() == [True, False, False, False, False, True]
    assert found.is_same.tolist() == [False, True, True, True, True, False]


def test_compare_windows_ignores_what_all_windows_share() -> None:
    luck = np.random.default_rng(0).normal(0.0, 1e6, 4)
    costs: Array = np.array([[300.0], [200.0]]) + luck
    found = compare_windows(costs, np.full(4, UNIFORM), np.array([0.5, 1.0]), looks=1)
    np.testing.assert_allclose(found.excess, [100.0, 0.0])
    np.testing.assert_allclose(found.excess_error, 0.0, atol=1e-9)
    assert (found.chosen, found.is_clear) == (1, True)


def test_one_window_alone_is_chosen() -> None:
    found = compare_windows(np.array([[1.0, 2.0]]), np.array([9.0, 9.0]), np.array([1.0]), looks=1)
    assert (found.chosen, found.is_clear, found.alike) == (0, True, (0, 0))


def test_the_sentence_claims_no_more_than_the_runs_show() -> None:
    rows = [{"window": name} for name in ("1 h", "2 h", "4 h", "8 h", "16 h", "1 d")]
    shown = compare_noisy([400, 230, 220, 210, 200, 205], runs=640, seed=0, noise=50.0)
    assert write_finding(rows, shown).startswith("Anything from 2 h to 1 d costs about the same; take 8 h")
    assert "certain" not in write_finding(rows, shown)
    assert shown.are_alike_shown
    partly = compare_noisy([400, 245, 220, 210, 200, 205], runs=640, seed=0, noise=50.0)
    assert partly.is_clear
    assert not partly.is_same[1]
    assert write_finding(rows, partly).startswith(
        "Anything from 2 h to 1 d costs about the same by these runs; take 8 h"
    )
    open_still = compare_noisy([400, 230, 220, 210, 200, 205], runs=2, seed=0, noise=5.0)
    assert not open_still.is_clear
    assert write_finding(rows, open_still).startswith("Anything from 2 h to 1 d may cost about the same; take 8 h")
    assert write_finding(rows, open_still).endswith("This is not certain: more runs may show that it costs more.")
    alone = compare_noisy([600, 600, 600, 200, 600, 600], runs=2, seed=0, noise=5.0)
    assert not alone.is_clear
    assert write_finding(rows, alone).startswith("By these runs, no other window costs as little as 8 h; take 8 h.")


def test_the_sentence_knows_of_windows_alike_that_are_no_neighbours() -> None:
    rows = [{"window": name} for name in ("1 h", "2 h", "4 h", "8 h", "16 h", "1 d")]
    other = compare_noisy([600, 600, 600, 205, 600, 200], runs=640, seed=0, noise=5.0)
    assert (other.alike, other.cheapest) == ((3, 3), 5)
    said = "8 h costs about the same as the cheapest, 1 d; take 8 h, the shortest of them that keeps 80 % of the "
    assert write_finding(rows, other) == said + "conversions."
    own = compare_noisy([600, 600, 600, 200, 600, 205], runs=640, seed=0, noise=5.0)
    assert write_finding(rows, own) == "8 h costs least; take 8 h."


def test_choose_window_takes_the_preferred_where_none_is_dearer() -> None:
    assert choose_window(SHARES, np.zeros(6, np.bool_)) == 3
    assert choose_window(np.array([0.9, 1.0]), np.zeros(2, np.bool_)) == 0


@pytest.mark.parametrize(("most", "looks"), [(2, [2]), (10, [10]), (25, [10, 20, 25]), (80, [10, 20, 40, 80])])
def test_look_schedule_doubles(most: int, looks: list[int]) -> None:
    assert look_schedule(most) == looks


def test_windows_are_named_ones_and_the_longest() -> None:
    ends = np.unique(np.append(LADDER[LADDER < 40 * DAY], 29.9 * DAY))
    ends = ends[ends <= 29.9 * DAY]
    compared = choose_windows(ends, np.linspace(0.0, 1.0, len(ends)))
    assert [format_duration(seconds) for seconds in compared[-3:]] == ["7 d", "14 d", "30 d"]
    ends = np.append(LADDER[LADDER < 5 * DAY], 5 * DAY)
    assert [format_duration(seconds) for seconds in choose_windows(ends, np.ones(len(ends)))[-2:]] == ["4 d", "5 d"]
