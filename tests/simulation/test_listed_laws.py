"""Laws that draw from a list, and delays that are drawn all at once: the numbers of sampling block by block."""

from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.delays.distribution import is_sequential
from latecomer.errors import InputError

RNG = np.random.default_rng(0)
THETA = np.full(5, 1 / np.sqrt(5))


LISTED = [
    lc.actions.Binary(4),
    lc.actions.Fixed([[1.0, 0.0], [0.6, 0.8], [0.0, 0.5]]),
    lc.actions.UnitVectors(),
    lc.actions.RandomFixed(6, seed=2),
    lc.actions.Rotating(count=9, visible=4, period=70),
    lc.actions.OneHot(4, table=[[2.0]]),
]


@pytest.mark.parametrize("law", LISTED, ids=repr)
def test_rounds_of_a_list_are_those_that_the_law_samples(law: Any) -> None:
    """A block takes rows of the law's list; its actions and the generator's numbers are those of `sample`."""
    world = lc.World(theta=[0.3, 0.6], actions=law, delays=lc.delays.Fixed(1))
    rows, sets = np.random.default_rng(7), np.random.default_rng(7)
    for first in (0, 1024):
        block = world.block(rows, 1024, first)
        expected = (
            law.sample_from(sets, first, 1024, world.theta)
            if hasattr(law, "sample_from")
            else law.sample(sets, 1024, world.theta)
        )
        np.testing.assert_array_equal(block.sets, expected)
        np.testing.assert_allclose(block.means, expected @ world.theta, rtol=1e-14)
    assert rows.bit_generator.state == sets.bit_generator.state


def test_a_law_derived_from_a_listed_one_is_sampled() -> None:
    class Half(lc.actions.Binary):
        def sample(self, rng: np.random.Generator, rounds: int, theta: Any) -> Any:
            return super().sample(rng, rounds, theta) / 2.0

    world = lc.World(theta=[0.3, 0.6], actions=Half(3), delays=lc.delays.Fixed(1))
    lengths = np.linalg.norm(world.block(np.random.default_rng(0), 50).sets, axis=2)
    np.testing.assert_allclose(lengths, 0.5)


def test_an_action_of_a_list_that_breaks_a_world_is_refused_however_rare() -> None:
    """All ones, one vector in 65,535, has mean 1.002: the first 1,024 rounds of one action each do not offer it."""
    with pytest.raises(InputError, match=r"has 1\.002"):
        lc.World(theta=np.full(16, 0.2505), actions=lc.actions.Binary(1), delays=lc.delays.Fixed(1))


SEQUENTIAL = [
    lc.delays.Geometric(mean=100),
    lc.delays.Geometric(mean=1.5, start=0),
    lc.delays.Fixed(3),
    lc.delays.Never(),
    lc.delays.Empirical([1, 4, 4, 90]),
]


@pytest.mark.parametrize("law", SEQUENTIAL, ids=repr)
def test_a_sequential_law_draws_all_at_once_what_it_draws_by_blocks(law: Any) -> None:
    assert is_sequential(law)
    by_blocks, at_once = np.random.default_rng(3), np.random.default_rng(3)
    blocks = np.concatenate([law.sample(by_blocks, 1024) for _ in range(3)])
    np.testing.assert_array_equal(law.sample(at_once, 2500), blocks[:2500])


@pytest.mark.parametrize("mean", [1.0, 2.9, 3.2, 4.0, 100.0, 1e12, 1e19])
def test_geometric_delays_are_the_generators_own(mean: float) -> None:
    drawn = lc.delays.Geometric(mean=mean).sample(np.random.default_rng(5), 2000)
    expected = np.minimum(np.random.default_rng(5).geometric(1.0 / mean, 2000), lc.delays.NEVER)
    np.testing.assert_array_equal(drawn, expected)


def test_a_law_that_may_draw_otherwise_is_not_sequential() -> None:
    class Mine(lc.delays.Geometric):
        def sample(self, rng: np.random.Generator, size: int) -> Any:
            return rng.permutation(size)

    mixture = lc.delays.Mixture([lc.delays.Fixed(0), lc.delays.Fixed(1)], weights=[0.5, 0.5])
    change = lc.delays.ChangePoint(lc.delays.Fixed(0), lc.delays.Fixed(1), change=5)
    assert not any(is_sequential(law) for law in (Mine(mean=3), mixture, change))
