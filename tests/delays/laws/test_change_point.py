"""A law that changes in the middle of a run."""

import numpy as np
import pytest

import latecomer as lc
from latecomer import delays
from latecomer.simulation.run import Episode

LAW = delays.ChangePoint(delays.Fixed(3), delays.Fixed(50), change=1000)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("first", "old"), [(0, 200), (799, 200), (800, 200), (801, 199), (999, 1), (1000, 0), (10**9, 0)]
)
def test_change_point_gives_each_round_the_law_of_its_time(first: int, old: int) -> None:
    assert delays.draw(LAW, rng(), 200, first).tolist() == [3] * old + [50] * (200 - old)


@pytest.mark.parametrize("change", [0, 1, 1024, 10**12])
def test_change_point_may_lie_at_either_end(change: int) -> None:
    law = delays.ChangePoint(delays.Fixed(3), delays.Fixed(50), change=change)
    expected = np.where(np.arange(1024) < change, 3, 50)
    np.testing.assert_array_equal(delays.draw(law, rng(), 1024, 0), expected)


def test_change_points_nest() -> None:
    """Rounds count from the beginning of the run, in the inner law too."""
    for law in (
        delays.ChangePoint(LAW, delays.Fixed(7), change=2000),
        delays.ChangePoint(
            delays.Fixed(3), delays.ChangePoint(delays.Fixed(50), delays.Fixed(7), change=2000), change=1000
        ),
    ):
        found = [delays.draw(law, rng(), 1, first).item() for first in (0, 999, 1000, 1999, 2000, 5000)]
        assert found == [3, 3, 50, 50, 7, 7]
        np.testing.assert_array_equal(
            delays.draw(law, rng(), 3000, 0), np.repeat([3, 50, 7], 1000), err_msg="a block across both changes"
        )


def test_change_point_without_a_round_is_the_later_law() -> None:
    np.testing.assert_array_equal(LAW.sample(rng(), 5), [50] * 5)
    assert (LAW.cdf(49), LAW.cdf(50), LAW.mean) == (0.0, 1.0, 50.0)


def test_change_point_of_a_longer_horizon_has_the_same_beginning() -> None:
    law = delays.ChangePoint(delays.Geometric(mean=5), delays.Geometric(mean=80), change=1500)
    world = lc.World(theta=[0.5, 0.5], actions=lc.actions.Uniform(3), delays=law)
    short, long = (Episode(world, horizon, seed=1, run=2).delays for horizon in (1700, 5000))
    np.testing.assert_array_equal(short, long[:1700])
    assert long[:1500].mean() == pytest.approx(5, abs=0.6)
    assert long[1500:].mean() == pytest.approx(80, abs=7)
