"""Delays that depend on the action."""

from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.simulation.run import Episode

SLOPE = [0.0, 1.0, -0.7]
WORLD = lc.World(
    theta=[0.3, 0.5, 0.4], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=8), delay_slope=SLOPE
)


class Spy:
    """Play arm t mod 3 in round t, and write down when each conversion arrives."""

    def __init__(self) -> None:
        self.round = 0
        self.arrivals: dict[int, int] = {}

    def decide(self, actions: Any) -> int:
        self.round += 1
        return self.round % 3

    def convert(self, round: int) -> None:
        self.arrivals[round] = self.round


def test_a_delay_is_that_of_the_round_times_the_factor_of_the_action() -> None:
    made: list[Spy] = []

    def make() -> Spy:
        made.append(Spy())
        return made[-1]

    lc.simulate(WORLD, {"spy": make}, horizon=300, runs=1, seed=4, progress=False, jobs=1)
    episode, expected = Episode(WORLD, 300, seed=4, run=0), {}
    for t in range(1, 301):
        arm = t % 3
        late = t + int(np.floor(episode.delays[t - 1] * np.exp(SLOPE[arm])))
        if episode.uniforms[t - 1] < WORLD.theta[arm] and late <= 300:
            expected[t] = late
    assert made[-1].arrivals == expected
    assert len(expected) > 80


def test_a_policy_in_compiled_rounds_plays_as_its_own_rule_does() -> None:
    """The same policy as a compiled player and, through decide and convert, as a rule of one's own."""
    policy = lc.OTFLinUCB(3, 20)
    both: dict[str, Any] = {"compiled": policy, "rule": lambda: _Rule(policy.fresh())}
    result = lc.simulate(WORLD, both, horizon=250, runs=2, seed=1, progress=False)
    np.testing.assert_allclose(result.regret("compiled"), result.regret("rule"), rtol=1e-12)


class _Rule:
    """A policy behind the interface of a rule, so that it is not taken for one of the compiled."""

    def __init__(self, policy: Any) -> None:
        self.decide, self.convert = policy.decide, policy.convert


def test_without_a_slope_or_with_none_of_it_nothing_changes() -> None:
    plain, zero = (
        lc.World(theta=WORLD.theta, actions=WORLD.actions, delays=WORLD.delays, delay_slope=slope)
        for slope in (None, [0.0, 0.0, 0.0])
    )
    policies: dict[str, Any] = {"ucb": lc.OTFLinUCB(3, 20), "spy": Spy}
    one, two = (lc.simulate(each, policies, horizon=200, runs=2, seed=2, progress=False) for each in (plain, zero))
    for name in policies:
        np.testing.assert_allclose(one.regret(name), two.regret(name), rtol=1e-12)
    assert "delay_slope" not in repr(plain)
    assert "delay_slope=[0.0, 0.0, 0.0]" in repr(zero)


@pytest.mark.parametrize("slope", [[1.0], [[1.0, 2.0, 3.0]], [0.0, float("nan"), 1.0], "abc"])
def test_a_slope_must_have_a_number_for_each_feature(slope: Any) -> None:
    with pytest.raises(InputError, match="delay_slope must be 3 finite numbers, one for each entry of theta"):
        lc.World(theta=WORLD.theta, actions=WORLD.actions, delays=WORLD.delays, delay_slope=slope)


def test_a_slope_is_refused_where_sets_differ_in_size() -> None:
    ragged = lc.actions.FromLog([[[1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]])
    with pytest.raises(InputError, match="delay_slope is for action sets of one size"):
        lc.World(theta=[0.2, 0.4], actions=ragged, delays=lc.delays.Fixed(1), delay_slope=[0.0, 1.0])


def test_the_test_of_dependence_finds_it() -> None:
    """A log of the arena's row: `delays.test_dependence` rejects."""
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 3, 1500)
    delays = np.floor(lc.delays.Geometric(mean=8).sample(rng, 1500) * np.exp(np.array(SLOPE)[arms])).astype(int)
    seen = delays <= 60
    test = lc.delays.test_dependence(delays[seen], np.full(int(seen.sum()), 60), np.eye(3)[arms[seen]])
    assert test.p_value < 1e-6
