"""Action sets of a log: the right ones in the right order, of any size, and clear refusals."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.simulation.run import Episode

THETA = np.array([0.3, 0.6])
DELAYS = lc.delays.Geometric(mean=15)


def make_sets(count: int, sizes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.random((size, 2)) / 1.5 for size in rng.choice(sizes, count)]


RAGGED, EVEN = make_sets(700, (1, 2, 5)), make_sets(700, (4,))


def world(sets: Any, order: Any = "log") -> lc.World:
    return lc.World(theta=THETA, actions=lc.actions.FromLog(sets, order=order), delays=DELAYS)


class Noting:
    """Plays the last action of every set, and keeps the sets."""

    def __init__(self) -> None:
        self.sets: list[np.ndarray] = []

    def decide(self, actions: np.ndarray) -> int:
        self.sets.append(actions.copy())
        return len(actions) - 1

    def convert(self, round: int) -> None: ...


def play_and_note(played: lc.World, horizon: int, seed: int = 0) -> list[np.ndarray]:
    made: list[Noting] = []

    def make() -> Noting:
        made.append(Noting())
        return made[-1]

    lc.simulate(played, {"noting": make}, horizon=horizon, runs=1, seed=seed, jobs=1, progress=False)
    return made[-1].sets


@pytest.mark.parametrize("sets", [RAGGED, EVEN])
def test_a_run_replays_the_log_and_begins_again(sets: list[np.ndarray]) -> None:
    seen = play_and_note(world(sets), 1600)
    assert len(seen) == 1600
    for t, actions in enumerate(seen):
        np.testing.assert_array_equal(actions, sets[t % 700])


def test_random_order_draws_every_set_as_often() -> None:
    marked = [np.full((1 + i % 3, 2), i / 100) for i in range(40)]
    seen = np.array([round(100 * actions[0, 0]) for actions in play_and_note(world(marked, "random"), 4000)])
    counts = np.bincount(seen, minlength=40)
    assert ((counts - 100) ** 2 / 100).sum() < 82, "chi-square of 39 degrees of freedom: once in ten thousand"
    again = [round(100 * actions[0, 0]) for actions in play_and_note(world(marked, "random"), 900)]
    assert again == seen[:900].tolist(), "a longer horizon has the same beginning"


class Disguised:
    """A policy as somebody else's object, for plain Python to play."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.decide, self.convert = policy.decide, policy.convert

    def fresh(self, seed: int) -> "Disguised":
        return Disguised(self.policy.fresh(seed))


POLICIES = {"greedy": lc.Greedy(2, 20), "ucb": lc.OTFLinUCB(2, 20), "waiting": lc.WaitingLinUCB(2, 20)}


@pytest.mark.parametrize(
    ("order", "horizon", "names"),
    [
        ("log", 60, ["ucb", "waiting"]),
        ("random", 60, ["ucb", "waiting"]),
        ("random", 1040, ["greedy"]),  # enough to compile for, and the smallest loop
        *(pytest.param(order, 2600, [*POLICIES], marks=pytest.mark.soak) for order in ("log", "random")),
    ],
)
def test_compiled_rounds_of_sets_of_any_size_are_those_of_plain_python(
    order: str, horizon: int, names: list[str]
) -> None:
    policies: dict[str, Any] = {name: POLICIES[name] for name in names}
    both = policies | {f"{name} disguised": Disguised(policy) for name, policy in policies.items()}
    result = lc.simulate(world(RAGGED, order), both, horizon=horizon, runs=2, seed=3, progress=False)
    for name in policies:
        np.testing.assert_array_equal(result.regret(name), result.regret(f"{name} disguised"))
        np.testing.assert_array_equal(result.conversions(name), result.conversions(f"{name} disguised"))


def test_a_policy_chooses_within_each_set() -> None:
    """Uniform play: its regret is Σ (best − mean of the set's means), to 4 standard errors."""
    result = lc.simulate(world(RAGGED), {"u": lc.Uniform(2, 5)}, horizon=1400, runs=1, seed=1, progress=False)
    expected = 2 * sum((actions @ THETA).max() - (actions @ THETA).mean() for actions in RAGGED)
    variance = 2 * sum((actions @ THETA).var() for actions in RAGGED)
    assert abs(result.final("u")[0] - expected) < 4 * np.sqrt(variance)


def test_arrays_lists_and_logs_are_the_same() -> None:
    array = np.stack(EVEN)
    log = SimpleNamespace(action_sets=(actions.tolist() for actions in EVEN))
    blocks = [Episode(world(sets), 100, seed=0, run=0).block(0).sets for sets in (EVEN, array, log)]
    np.testing.assert_array_equal(blocks[0], blocks[1])
    np.testing.assert_array_equal(blocks[0], blocks[2])
    law = lc.actions.FromLog(EVEN)
    np.testing.assert_array_equal(law.sample(np.random.default_rng(0), 100, THETA), array[:100])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lc.actions.FromLog(3), r"sets must be a \(rounds, K, d\) array, a list .*; got 3"),
        (lambda: lc.actions.FromLog([]), r"sets must hold at least one set; got none"),
        (
            lambda: lc.actions.FromLog([[[1, 0]], [[1, 0, 0]]]),
            r"sets\[1\] must be a \(K, 2\) array, as the first is; .*3",
        ),
        (lambda: lc.actions.FromLog(np.eye(2)), r"sets\[0\] must be a \(K, d\) array; got shape \(2,\)"),
        (
            lambda: lc.actions.FromLog([[["a", 0]]]),
            r"sets\[0\] must be a \(K, d\) array of numbers; got \[\['a', 0\]\]",
        ),
        (lambda: lc.actions.FromLog([np.empty((0, 2))]), r"sets\[0\] must be a \(K, d\) array; got shape \(0, 2\)"),
        (lambda: lc.actions.FromLog([np.eye(2)], order="x"), r"order must be one of 'log', 'random'; got 'x'"),  # type: ignore[arg-type]
        (lambda: world([np.eye(3)]), r"actions must have 2 columns, since theta has 2 entries; FromLog.* has 3"),
        (
            lambda: world([np.eye(2), [[3.0, 0.0]]]),
            r"actions must be finite and of norm at most 1; \[3.0, 0.0\] has norm 3",
        ),
        (lambda: world([[[0.0, -1.0]]]), r"every mean reward .* must be in \[0, 1\]; action \[0.0, -1.0\] has -0.6"),
        (lambda: world([[[0.0, np.nan]]]), r"actions must be finite"),
    ],
)
def test_what_cannot_be_replayed_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
