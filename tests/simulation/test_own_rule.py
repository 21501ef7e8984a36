"""Rules of one's own in a simulation: the same world as the policies meet, and clear refusals."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.simulation.run import Episode
from latecomer.simulation.seeding import make_generators, policy_purpose

WORLD = lc.World(theta=[0.5, 0.8], actions=lc.actions.Uniform(6), delays=lc.delays.Geometric(mean=15))
LISTED = lc.World(theta=[0.5, 0.8], actions=lc.actions.Binary(3), delays=lc.delays.Geometric(mean=2, start=0))


class Wrapped:
    """A policy as somebody else's object: only decide, convert and fresh are seen."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def decide(self, actions: Any) -> Any:
        return self._policy.decide(actions)

    def convert(self, round: int) -> None:
        assert self._policy.convert(round) in (lc.Verdict.ACCEPTED, lc.Verdict.LATE)

    def fresh(self, seed: int) -> "Wrapped":
        return Wrapped(self._policy.fresh(seed))


@pytest.mark.parametrize(("horizon", "runs"), [(1100, 1), pytest.param(2600, 2, marks=pytest.mark.soak)])
@pytest.mark.parametrize("world", [WORLD, LISTED])
def test_a_policy_in_disguise_has_the_same_regret_to_the_last_bit(world: lc.World, horizon: int, runs: int) -> None:
    """Every policy that draws nothing of its own: the rule meets the same sets, rewards and delays, in their order."""
    policies: dict[str, Any] = {"exact": lc.OTFLinUCB(2, 20), "greedy": lc.Greedy(2, 40)}
    rules = {f"{name} disguised": Wrapped(policy) for name, policy in policies.items()}
    result = lc.simulate(world, {**policies, **rules}, horizon=horizon, runs=runs, seed=4, progress=False)
    for name in policies:
        np.testing.assert_array_equal(result.regret(name), result.regret(f"{name} disguised"))


def test_a_seed_makes_the_same_draws_on_any_number_of_threads() -> None:
    rules: dict[str, Any] = {"ts": Wrapped(lc.OTFLinTS(2, 20))}
    one, two, alone = (
        lc.simulate(WORLD, policies, horizon=200, runs=6, seed=4, jobs=jobs, progress=False).regret("ts")
        for policies, jobs in ((rules, 1), (rules, 2), ({**rules, "other": lc.Uniform(2, 3)}, 1))
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, alone)
    assert len({*one[:, -1]}) == 6, "each run has a seed of its own"


Answer = namedtuple("Answer", ["index", "round"])


class Recorder:
    """Plays the last action, and notes what it is told; `answers` is what `decide` returns."""

    kept: list["Recorder"] = []  # noqa: RUF012 - read by the test after the run

    def __init__(self) -> None:
        self.sets: list[Any] = []
        self.converted: list[tuple[int, Any]] = []
        self.kept.append(self)

    def decide(self, actions: Any) -> Any:
        self.sets.append(actions)
        return self.answer(len(actions) - 1)

    def answer(self, index: int) -> Any:
        return np.int64(index)

    def convert(self, round: Any) -> None:
        self.converted.append((len(self.sets), round))


class TextRounds(Recorder):
    def answer(self, index: int) -> Any:
        return _Record(index, f"decision-{len(self.sets)}")


class _Record:
    def __init__(self, index: int, round: str) -> None:
        self.index, self.round = index, round


@pytest.mark.parametrize(("rule", "is_text"), [(Recorder, False), (TextRounds, True)])
def test_conversions_come_when_the_episode_says_so(rule: type[Recorder], is_text: bool) -> None:
    Recorder.kept.clear()
    lc.simulate(LISTED, {"rule": rule}, horizon=1500, runs=1, seed=7, progress=False)
    played = Recorder.kept[-1]
    episode = Episode(LISTED, 1500, seed=7, run=0)
    sets = np.concatenate([episode.block(first).sets for first in (0, 1024)])
    np.testing.assert_array_equal(np.array(played.sets), sets)
    means = sets[:, -1] @ LISTED.theta
    arrivals = sorted(
        (t + int(episode.delays[t]) + 1, t + 1)
        for t in range(1500)
        if episode.uniforms[t] < means[t] and t + episode.delays[t] < 1500
    )
    expected = [(at, f"decision-{round}" if is_text else round) for at, round in arrivals]
    assert played.converted == expected


def test_a_function_may_make_a_policy() -> None:
    arguments: dict[str, Any] = {"horizon": 100, "runs": 2, "seed": 1, "progress": False}
    made = lc.simulate(WORLD, {"ts": lambda: lc.OTFLinTS(2, 20)}, **arguments)
    given = lc.simulate(WORLD, {"ts": lc.OTFLinTS(2, 20)}, **arguments)
    np.testing.assert_array_equal(made.regret("ts"), given.regret("ts"))


def test_the_seed_of_a_rule_is_drawn_from_its_own_stream() -> None:
    seeds: list[int] = []

    class Seeded(Recorder):
        def fresh(self, seed: int) -> "Seeded":
            seeds.append(seed)
            return Seeded()

    lc.simulate(WORLD, {"s": Seeded()}, horizon=5, runs=2, seed=3, jobs=1, progress=False)
    expected = [int(make_generators(3, run, [policy_purpose("s")])[0].integers(2**32)) for run in (0, 1)]
    assert seeds[-2:] == expected


class Returns:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def decide(self, actions: Any) -> Any:
        return self.answer

    def convert(self, round: int) -> None: ...


SAME = Returns(0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Returns(0), r"policies\['x'\] must be .* or make a rule for each run; got .*Returns.*: it plays one run"),
        ("ucb", r"policies\['x'\] must be .*; got 'ucb': a function without arguments that makes a rule, a class, or"),
        (Returns, r"policies\['x'\] must make a rule when it is called without arguments, .*; got .*'answer'"),
        (dict, r"policies\['x'\] must make a rule with decide\(actions\) and convert\(round\); got {}"),
        (lambda: SAME, r"policies\['x'\] must make a new rule at every call, .*; got .*Returns.* twice"),
        (lambda: lc.Greedy(3, 5), r"policies\['x'\] must have the world's dim, 2; got 3"),
        *(
            (
                lambda answer=answer: Returns(answer),
                r"policies\['x'\].decide must return an index from 0 to 5, .*round 1",
            )
            for answer in (6, -1, 1.0, True, None, "0", (1, 2), Answer(9, 1))
        ),
    ],
)
def test_what_is_no_rule_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        lc.simulate(WORLD, {"x": given}, horizon=5, runs=1, progress=False)
