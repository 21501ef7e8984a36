"""Worlds whose θ changes: what they offer, what they pay, and what regret means in them."""

from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.simulation.run import Episode

BEFORE, AFTER = [0.1, 0.5], [0.5, 0.1]


def world(**more: Any) -> lc.World:
    given = {
        "theta": {0: BEFORE, 100: AFTER},
        "actions": lc.actions.UnitVectors(),
        "delays": lc.delays.Fixed(0),
        **more,
    }
    return lc.World(**given)


def test_theta_jumps_at_its_round_and_stays() -> None:
    means = world().block(np.random.default_rng(0), 300).means
    np.testing.assert_array_equal(means[:100], np.tile(BEFORE, (100, 1)))
    np.testing.assert_array_equal(means[100:], np.tile(AFTER, (200, 1)))


def test_theta_drifts_by_equal_steps() -> None:
    means = world(change="drift").block(np.random.default_rng(0), 300).means
    np.testing.assert_allclose(np.diff(means[:101], axis=0), np.tile([0.004, -0.004], (100, 1)), atol=1e-12)
    np.testing.assert_allclose(means[100:], np.tile(AFTER, (200, 1)), atol=1e-12)


@pytest.mark.parametrize("law", [lc.actions.Binary(3), lc.actions.Uniform(3), lc.actions.UnitVectors()])
def test_a_world_that_never_changes_is_the_plain_one(law: Any) -> None:
    plain = lc.World(theta=[0.2, 0.4], actions=law, delays=lc.delays.Geometric(mean=5))
    given = lc.World(theta={0: [0.2, 0.4]}, actions=law, delays=lc.delays.Geometric(mean=5))
    one, other = (Episode(each, 50, seed=1, run=0).block(0) for each in (plain, given))
    np.testing.assert_array_equal(one.sets, other.sets)
    np.testing.assert_allclose(one.means, other.means, rtol=1e-15)


def test_regret_is_against_the_best_action_of_each_round() -> None:
    class First:
        def decide(self, actions: Any) -> int:
            return 0

        def convert(self, round: int) -> None:
            pass

    result = lc.simulate(world(), {"first": First}, horizon=300, runs=1, seed=0)
    regret = np.diff(np.concatenate([[0.0], result.regret("first")[0]]))
    np.testing.assert_allclose(regret[:100], 0.4)
    np.testing.assert_allclose(regret[100:], 0.0, atol=1e-12)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"theta": {5: BEFORE}}, "theta must be given at round 0"),
    ({"theta": {}}, "theta must be given at round 0"),
    ({"theta": {0: BEFORE, 5: [0.1]}}, "theta must be vectors of one length"),
    ({"theta": {0: BEFORE, 5: [0.1, 1.4]}}, "every mean reward"),
    ({"theta": {0: BEFORE, -3: AFTER}}, "theta: a round"),
    ({"theta": {0: [0.1, float("nan")]}}, "theta must be a vector of finite numbers"),
    ({"change": "slide"}, "change must be"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_a_wrong_schedule_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        world(**given)
