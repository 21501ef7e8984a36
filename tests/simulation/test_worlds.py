"""Worlds and action laws."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latecomer as lc
from latecomer.core.jit import Declaration, find_declaration
from latecomer.errors import InputError
from latecomer.simulation.kernel import group_arrivals

RNG = np.random.default_rng(0)
THETA = np.full(5, 1 / np.sqrt(5))


@pytest.mark.parametrize(
    ("law", "best", "average"),
    [(lc.actions.Uniform(10), 0.9668, 0.8787), (lc.actions.Binary(10), 0.910, 0.702)],
)
def test_action_laws_have_the_means_of_the_paper(law: Any, best: float, average: float) -> None:
    """Compare the means of the best of ten actions and of an average one with an independent computation."""
    means = law.sample(np.random.default_rng(1), 40_000, THETA) @ THETA
    assert means.max(axis=1).mean() == pytest.approx(best, abs=1e-3)
    assert means.mean() == pytest.approx(average, abs=1e-3)


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_binary_actions_are_uniform_over_what_is_not_zero(dim: int) -> None:
    actions = lc.actions.Binary(4).sample(np.random.default_rng(2), 5000, np.full(dim, 0.1))
    np.testing.assert_allclose(np.linalg.norm(actions, axis=2), 1.0, rtol=1e-12)
    support = actions > 0
    assert support.any(axis=2).all()
    share = 2 ** (dim - 1) / (2**dim - 1)  # of the nonzero vectors, those with a given bit set
    np.testing.assert_allclose(support.mean(axis=(0, 1)), share, atol=0.02)


def test_sphere_faces_theta() -> None:
    theta = np.array([0.3, -0.5, 0.1])
    actions = lc.actions.Sphere(7).sample(np.random.default_rng(3), 4000, theta)
    np.testing.assert_allclose(np.linalg.norm(actions, axis=2), 1.0, rtol=1e-12)
    means = actions @ theta
    assert means.min() >= 0
    # On the half sphere of R^3 the height is uniform on [0, ‖θ‖].
    assert means.mean() == pytest.approx(np.linalg.norm(theta) / 2, abs=0.005)


def test_fixed_offers_its_arms_in_every_round() -> None:
    arms = lc.actions.Fixed([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(arms.sample(RNG, 3, np.array([0.1, 0.2])), np.stack([np.eye(2)] * 3))
    with pytest.raises(InputError, match=r"arms must be a \(K, d\) array, one row per arm; got shape \(2,\)"):
        lc.actions.Fixed([1.0, 2.0])
    with pytest.raises(InputError, match=r"arms must be a \(K, d\) array of numbers"):
        lc.actions.Fixed([[1.0], [1.0, 2.0]])


def test_unit_vectors_are_the_rows_of_the_identity() -> None:
    np.testing.assert_array_equal(
        lc.actions.UnitVectors().sample(RNG, 3, np.array([0.1, 0.2])), np.stack([np.eye(2)] * 3)
    )


def test_random_fixed_offers_the_same_arms_in_every_round_and_run() -> None:
    law = lc.actions.RandomFixed(7, seed=3)
    first, second = (law.sample(np.random.default_rng(i), 4, THETA) for i in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, np.stack([law.arms(5)] * 4))
    np.testing.assert_allclose(np.linalg.norm(law.arms(5), axis=1), 1.0, rtol=1e-12)
    assert (law.arms(5) >= 0).all()
    assert not np.allclose(lc.actions.RandomFixed(7, seed=4).arms(5), law.arms(5))


def test_rotating_moves_one_arm_further_every_period() -> None:
    law = lc.actions.Rotating(count=5, visible=3, period=10, seed=3)
    arms = lc.actions.RandomFixed(5, seed=3).arms(5)
    for first, offered in (
        (0, [0, 1, 2]),
        (9, [0, 1, 2]),
        (10, [1, 2, 3]),
        (29, [2, 3, 4]),
        (30, [3, 4, 0]),
        (50, [0, 1, 2]),
    ):
        np.testing.assert_array_equal(law.sample_from(RNG, first, 1, THETA)[0], arms[offered])
    whole = law.sample(RNG, 100, THETA)
    parts = [law.sample_from(RNG, first, 25, THETA) for first in range(0, 100, 25)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_rotating_moves_on_between_blocks_of_a_simulation() -> None:
    """Beyond the first block of rounds; and a longer horizon has the same beginning."""
    law = lc.actions.Rotating(count=40, visible=3, period=100, seed=3)
    world = lc.World(theta=[0.1, 0.9], actions=law, delays=lc.delays.Fixed(1))
    seen = [world.block(np.random.default_rng(0), 1024, first).sets for first in (0, 1024, 2048)]
    np.testing.assert_array_equal(np.concatenate(seen), law.sample(RNG, 3072, world.theta))
    played = [
        lc.simulate(world, {"g": lc.Greedy(2, 5)}, horizon=horizon, runs=1, progress=False).regret("g")
        for horizon in (1100, 1500)
    ]
    np.testing.assert_array_equal(played[0], played[1][:, :1100])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lc.actions.RandomFixed(0), r"count must be at least 1"),
        (
            lambda: lc.actions.RandomFixed(2.0),  # type: ignore[arg-type]
            r"count must be a whole number; got 2.0",
        ),
        (lambda: lc.actions.RandomFixed(2, seed=-1), r"seed must be at least 0"),
        (lambda: lc.actions.Rotating(5, 6, 1), r"visible must be at most count, 5; got 6"),
        (lambda: lc.actions.Rotating(5, 0, 1), r"visible must be at least 1"),
        (lambda: lc.actions.Rotating(5, 2, 0), r"period must be at least 1"),
        (lambda: lc.actions.Rotating(5, 2, 1, seed=-1), r"seed must be at least 0"),
    ],
)
def test_action_laws_refuse_bad_arguments(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_logistic_world_has_logistic_means() -> None:
    world = lc.World(
        theta=[2.0, -3.0],
        actions=lc.actions.Fixed([[1.0, 0.0], [0.0, 1.0]]),
        delays=lc.delays.Fixed(1),
        reward="logistic",
        intercept=-1.0,
    )
    block = world.block(np.random.default_rng(0), 5)
    np.testing.assert_allclose(block.means, np.tile(1 / (1 + np.exp([-1.0, 4.0])), (5, 1)), rtol=1e-15)
    np.testing.assert_allclose(block.means.max(axis=1), 1 / (1 + np.exp(-1.0)), rtol=1e-15)
    assert repr(world).endswith(", reward='logistic', intercept=-1.0)")


def test_an_intercept_moves_linear_means_too() -> None:
    arms = lc.actions.Fixed([[1.0, 0.0], [0.0, 1.0]])
    world = lc.World(theta=[0.5, -0.2], actions=arms, delays=lc.delays.Fixed(1), intercept=0.25)
    np.testing.assert_allclose(world.block(np.random.default_rng(0), 1).means, [[0.75, 0.05]], rtol=1e-14)
    with pytest.raises(InputError, match=r"must be in \[0, 1\]; action \[1.0, 0.0\] has 1.1"):
        lc.World(theta=[0.5, -0.2], actions=arms, delays=lc.delays.Fixed(1), intercept=0.6)


def test_a_world_says_which_action_breaks_it() -> None:
    with pytest.raises(InputError, match=r"must be in \[0, 1\]; action \[0.0, 1.0\] has -0.5: change theta, or"):
        lc.World(theta=[0.5, -0.5], actions=lc.actions.Fixed(np.eye(2)), delays=lc.delays.Fixed(1))
    with pytest.raises(InputError, match=r"action \[1.0, 0.0\] has 1.5"):
        lc.World(theta=[1.5, 0.5], actions=lc.actions.Fixed(np.eye(2)), delays=lc.delays.Fixed(1))


def test_an_action_that_breaks_it_later_is_caught_when_it_comes() -> None:
    class Late:
        calls = 0

        def sample(self, rng: np.random.Generator, rounds: int, theta: Any) -> Any:
            self.calls += 1
            return np.full((rounds, 2, 2), 0.5 if self.calls == 1 else 0.7)

    world = lc.World(theta=[0.9, 0.9], actions=Late(), delays=lc.delays.Fixed(1))
    with pytest.raises(InputError, match=r"action \[0.7, 0.7\] has 1.26"):
        lc.simulate(world, {"g": lc.Greedy(2, 3)}, horizon=5, runs=1, progress=False)


class Negative:
    """A law that would send a kernel before the beginning of its arrays."""

    mean = 1.0

    def cdf(self, k: Any) -> Any:
        return 1.0

    def sample(self, rng: np.random.Generator, size: int) -> Any:
        return np.full(size, -(10**9))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"theta": [[1.0]]}, r"theta must be a vector of finite numbers"),
        ({"theta": [np.nan, 0.1]}, r"theta must be a vector of finite numbers"),
        ({"theta": "abc"}, r"theta must be a vector of finite numbers; got 'abc'"),
        ({"theta": [10**400, 0]}, r"theta must be a vector of finite numbers"),
        ({"delays": lc.delays.Geometric}, r"delays must be a law with a method sample; got <class"),
        ({"delays": Negative()}, r"at least 0"),
        ({"reward": "probit"}, r"reward must be one of 'linear', 'logistic'; got 'probit'"),
        ({"intercept": "0"}, r"intercept must be a finite number; got '0'"),
        ({"intercept": np.nan}, r"intercept must be a finite number; got nan"),
        ({"intercept": np.inf, "reward": "logistic"}, r"intercept must be a finite number; got inf"),
        ({"actions": 3}, r"actions must be a law with a method sample; got 3"),
        ({"delays": "geometric"}, r"delays must be a law with a method sample; got 'geometric'"),
        ({"actions": lc.actions.Fixed(np.eye(3))}, r"actions must be drawn as a \(1024, K, 2\) array"),
        ({"actions": lc.actions.Fixed(np.eye(2) * 1.5)}, r"of norm at most 1; \[1.5, 0.0\] has norm 1.5: divide"),
    ],
)
def test_world_refuses_parts_that_do_not_fit(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"theta": [0.5, 0.5], "actions": lc.actions.Binary(3), "delays": lc.delays.Fixed(1)}
    with pytest.raises(InputError, match=message):
        lc.World(**{**good, **arguments})


def test_group_arrivals_orders_rounds_by_arrival() -> None:
    delays = np.array([2, 0, 0, 5, 1, 0, 2**62])
    starts, order = group_arrivals(delays)
    by_round = [order[starts[t] : starts[t + 1]].tolist() for t in range(len(delays))]
    assert by_round == [[], [1], [0, 2], [], [], [4, 5], []]


@given(st.lists(st.one_of(st.integers(0, 12), st.just(2**62)), min_size=1, max_size=40))
def test_the_two_forms_of_group_arrivals_agree(delays: list[int]) -> None:
    declared = find_declaration(group_arrivals.function)
    assert isinstance(declared, Declaration)
    for one, other in zip(group_arrivals.function(np.array(delays)), declared.source(np.array(delays)), strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("law", [lc.actions.Binary, lc.actions.Uniform, lc.actions.Sphere])
def test_world_refuses_an_action_law_without_actions(law: Any) -> None:
    with pytest.raises(InputError, match="count must be at least 1"):
        law(0)


class WithoutTheta:
    def sample(self, rng: Any, rounds: int) -> Any:
        return np.broadcast_to(np.eye(2), (rounds, 2, 2))


class OnlySize:
    mean = 1.0

    def sample(self, size: int) -> Any:
        return np.ones(size, np.int64)

    def cdf(self, k: Any) -> Any:
        return np.ones_like(k)


class Broken(OnlySize):
    def sample(self, rng: Any, size: int) -> Any:  # type: ignore[override]
        return size + "rounds"  # type: ignore[operator]


class ChangingWrongly:
    def sample(self, rng: Any, rounds: int, theta: Any) -> Any:
        raise AssertionError("it has sample_from")

    def sample_from(self, rng: Any, rounds: int) -> Any:
        return np.broadcast_to(np.eye(2), (rounds, 2, 2))


def test_a_sample_of_another_signature_is_explained() -> None:
    theta, at_once = [0.2, 0.4], lc.delays.Fixed(0)
    rule = (
        r"^sample of <.*WithoutTheta.*> must take \(rng, rounds, theta\), by position; it has \(rng: .*, rounds: .*\)"
    )
    with pytest.raises(InputError, match=rule):
        lc.World(theta=theta, actions=WithoutTheta(), delays=at_once)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^sample_from of <.*> must take \(rng, first, rounds, theta\), by position"):
        lc.World(theta=theta, actions=ChangingWrongly(), delays=at_once)
    wrong: Any = OnlySize()
    mixed = lc.delays.Mixture([wrong, lc.delays.Never()], weights=[0.5, 0.5])
    for law in (wrong, mixed):
        with pytest.raises(InputError, match=r"^sample of <.*OnlySize.*> must take \(rng, size\), by position; it has"):
            lc.World(theta=theta, actions=lc.actions.UnitVectors(), delays=law)
    with pytest.raises(TypeError, match="unsupported operand"):  # a fault of its own stays what it is
        lc.World(theta=theta, actions=lc.actions.UnitVectors(), delays=Broken())
