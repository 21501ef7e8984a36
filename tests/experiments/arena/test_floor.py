"""The floor: a learner that knows the delay law, and one without delay."""

import numpy as np
import pytest

import latecomer as lc
from latecomer.core.delay_curve import bin_edges
from latecomer.experiments.arena.floor import KNOWN, UNDELAYED, KnownDelayLinTS, make_floor, true_curve
from latecomer.policies.recommended import constants


@pytest.mark.parametrize("window", [0, 7, 500])
def test_true_curve_is_the_share_of_in_window_conversions(window: int) -> None:
    law, edges = lc.delays.Geometric(mean=20), bin_edges(window)
    curve = true_curve(law, edges, window)
    delays = law.sample(np.random.default_rng(0), 200_000)
    within = delays[delays <= window]
    if not len(within):
        np.testing.assert_array_equal(curve, 1.0)  # geometric delays begin at 1
        return
    np.testing.assert_allclose(curve, [(within < edge).mean() for edge in edges], atol=0.006)
    assert curve[-1] == 1.0


def test_known_delays_weigh_rounds_by_the_true_curve() -> None:
    """From the definition: G = λI + Σ F(age) AAᵀ, F in sixteenths; the conversions change nothing in it."""
    law, window = lc.delays.Fixed(3), 10
    policy = KnownDelayLinTS(2, window, law, ridge=1.0, exploration=0.5)
    rng, chosen = np.random.default_rng(1), []
    for _ in range(20):
        decision = policy.decide(rng.random((3, 2)) / 2)
        chosen.append(decision.action)
        if rng.random() < 0.5:
            policy.convert(decision.round)
    weights = [float(20 - round >= 4) for round in range(1, 20)]  # a delay of 3 is over at age 4; the last was age 0
    gram = np.eye(2) + sum(w * np.outer(a, a) for w, a in zip(weights, chosen, strict=False))
    np.testing.assert_allclose(np.triu(policy.state.array("gram")), np.triu(gram), rtol=1e-12)


def test_known_delays_survive_a_copy_for_each_run() -> None:
    law = lc.delays.Geometric(mean=20)
    policy = KnownDelayLinTS(2, 50, law, **constants(2))
    np.testing.assert_array_equal(policy.fresh(1).state.array("curve"), policy.state.array("curve"))
    assert policy.state.array("curve")[0] == 0.0


def test_the_floor_is_of_two_learners() -> None:
    world = lc.World(theta=[0.3, 0.8], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=5))
    floor = make_floor(world, 8)
    assert list(floor) == [KNOWN, UNDELAYED]
    assert floor[KNOWN][0] is world
    at_once, learner = floor[UNDELAYED]
    assert (at_once.delays.cdf(0), learner.window) == (1.0, 0)
    np.testing.assert_array_equal(at_once.theta, world.theta)
