"""Generators of runs: seeded in one go, and NumPy's own to the last bit."""

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from latecomer.simulation.seeding import ACTIONS, POLICY, make_generators, policy_purpose

SEEDS = (0, 1, 7, 2**32 - 1, 2**32, 2**64 + 3, 2**127, 2**128, 2**200 + 5)
RUNS = (0, 1, 63, 64, 1000, 2**32 - 1, 2**32, 2**40 + 17)
PURPOSES = ((ACTIONS,), (POLICY,), policy_purpose("ts"), (3, 0), (3, 2**32 - 1), (2**33, 5, 6))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("run", RUNS)
def test_generators_are_those_of_numpys_seed_sequence(seed: int, run: int) -> None:
    for generator, purpose in zip(make_generators(seed, run, PURPOSES), PURPOSES, strict=True):
        expected = default_rng(SeedSequence(seed, spawn_key=(run, *purpose)))
        assert generator.bit_generator.state == expected.bit_generator.state, purpose
        np.testing.assert_array_equal(generator.standard_normal(5), expected.standard_normal(5))


def test_generators_of_one_call_share_nothing() -> None:
    first, again = (make_generators(3, 4, [(0,), (1,)]) for _ in range(2))
    first[0].random(100)
    assert first[0].bit_generator.state != again[0].bit_generator.state
    assert first[1].bit_generator.state == again[1].bit_generator.state
