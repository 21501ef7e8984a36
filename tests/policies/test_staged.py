"""`Staged`: surrogates of stages, held to a slow oracle straight from the definitions; and to worlds with a stage."""

import math
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError

WINDOW, PRIOR = 20, 10.0


class Oracle:
    """Everything that has happened, and B from it."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.actions: list[Any] = []
        self.reached: list[tuple[int, str, float]] = []
        """Round, stage, and the surrogate of that moment"""
        self.values: dict[int, float] = {}

    @property
    def rounds(self) -> int:
        return len(self.actions)

    def closed(self) -> list[int]:
        """The rounds that the latest decision has found closed."""
        return [s for s in range(1, self.rounds + 1) if self.rounds - s > WINDOW]

    def surrogate(self, stage: str) -> float:
        every, with_stage = range(1, self.rounds + 1), {s for s, name, _ in self.reached if name == stage}
        yes, no = [s for s in every if s in with_stage], [s for s in every if s not in with_stage]
        if not yes or not no:
            return 0.0
        mean = len(self.values) / self.rounds
        r, q = ((sum(s in self.values for s in part) + PRIOR * mean) / (len(part) + PRIOR) for part in (yes, no))
        error = math.sqrt(r * (1 - r) / len(yes) + q * (1 - q) / len(no))
        return r - q if r - q > 2 * error else 0.0

    @property
    def B(self) -> Any:
        closed, total = set(self.closed()), np.zeros(self.dim)
        for s, action in enumerate(self.actions, start=1):
            surrogates = [u for round_, _, u in self.reached if round_ == s and s not in closed]
            total += action * self.values.get(s, max(surrogates, default=0.0))
        return total


@pytest.mark.parametrize("policy", [lc.OTFLinUCB, lc.recommended])
def test_surrogates_are_those_of_the_definition(policy: Any) -> None:
    rng, rows = np.random.default_rng(2), np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    staged, oracle = lc.Staged(2, WINDOW, policy=policy, prior=PRIOR, seed=1), Oracle(2)
    credited = 0
    for _ in range(160):
        decision = staged.decide(rows)
        oracle.actions.append(decision.action)
        for stage, rate in (("click", 0.4), ("cart", 0.2)):
            late = decision.round - int(rng.integers(0, 8))
            if late > 0 and rng.random() < rate and not any(r == late and s == stage for r, s, _ in oracle.reached):
                surrogate = 0.0 if late in oracle.values else oracle.surrogate(stage)
                credited += surrogate > 0.0
                assert staged.reach(late, stage) is lc.Verdict.ACCEPTED
                assert staged.reach(late, stage) is lc.Verdict.DUPLICATE
                oracle.reached.append((late, stage, surrogate))
        buyers = [r for r, stage, _ in oracle.reached if stage == "cart" and r not in oracle.values]
        for late in buyers:
            if decision.round - late <= WINDOW and rng.random() < 0.1:
                assert staged.convert(late) is lc.Verdict.ACCEPTED
                oracle.values[late] = 1.0
        np.testing.assert_allclose(staged.policy.B, oracle.B, atol=1e-9)
    assert credited > 10
    assert staged.rates["cart"].surrogate == pytest.approx(oracle.surrogate("cart"))
    assert staged.reach(1, "click") is lc.Verdict.LATE
    assert staged.reach(999, "click") is lc.Verdict.UNKNOWN


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="reward must be left out"):
        lc.Staged(2, 10, reward={"scale": 2.0})
    with pytest.raises(InputError, match="prior must"):
        lc.Staged(2, 10, prior=0.0)
    staged = lc.Staged(2, 10)
    with pytest.raises(InputError, match="stage must be a text"):
        staged.reach(staged.decide(np.eye(2)), "")
    for given in ({}, {"precision": 0.3, "share": 0.3}, {"share": 0.0}, {"precision": 2.0}):
        with pytest.raises(InputError, match="stage"):
            lc.Stage(delays=lc.delays.Fixed(1), **given)


def make_world(**kind: float) -> lc.World:
    stage = lc.Stage(delays=lc.delays.Geometric(mean=3), **kind)
    arms = lc.actions.UnitVectors()
    return lc.World(theta=[0.1, 0.3], actions=arms, delays=lc.delays.Geometric(mean=20), stage=stage)


class Watcher:
    """A rule that plays the second action, and keeps what it is told."""

    def __init__(self) -> None:
        self.rounds, self.reached, self.converted = 0, {}, {}  # type: ignore[var-annotated]
        WATCHERS.append(self)

    def decide(self, actions: Any) -> int:
        self.rounds += 1
        return len(actions) - 1

    def reach(self, round: int) -> None:
        self.reached[round] = self.rounds

    def convert(self, round: int) -> None:
        self.converted[round] = self.rounds


WATCHERS: list[Watcher] = []


def test_a_world_tells_of_its_stage() -> None:
    for kind, share in (({"precision": 0.6}, 0.5), ({"share": 0.25}, 0.25)):
        lc.simulate(make_world(**kind), {"watcher": Watcher}, horizon=3000, runs=1, seed=4)
        watcher = WATCHERS[-1]
        assert len(watcher.reached) / 3000 == pytest.approx(share, abs=0.04)
        if "precision" in kind:
            both = set(watcher.converted) <= set(watcher.reached)
            assert both
            assert all(watcher.reached[round_] <= when for round_, when in watcher.converted.items())


def test_a_stage_changes_nothing_for_those_who_do_not_reach_it() -> None:
    plain = lc.World(theta=[0.1, 0.3], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=20))
    found = [
        lc.simulate(world, {"ours": lc.recommended(2, 60)}, horizon=200, runs=2, seed=4).regret("ours")
        for world in (plain, make_world(share=0.5))
    ]
    np.testing.assert_array_equal(found[0], found[1])
