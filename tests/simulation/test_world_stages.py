"""Stages of worlds: who is told of them, and that a policy which is told sees sooner."""

from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError


@pytest.mark.parametrize("given", [{}, {"precision": 0.3, "share": 0.3}, {"share": 0.0}, {"precision": 2.0}])
def test_a_wrong_stage_is_refused(given: dict[str, float]) -> None:
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


def test_a_policy_with_stages_is_told_of_its_first() -> None:
    policy = lc.OTFLinUCB(2, 60, stages=["click", "cart"])
    played = [
        lc.simulate(world, {"ours": policy}, horizon=300, runs=1, seed=4).regret("ours")
        for world in (make_world(precision=0.6), make_world(precision=0.6), make_world(share=0.5))
    ]
    np.testing.assert_array_equal(played[0], played[1])
    assert not np.array_equal(played[0], played[2])
    assert policy.rounds == 0


def test_a_policy_with_stages_plays_a_world_without_one_as_any_other() -> None:
    world = lc.World(theta=[0.1, 0.3], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=20))
    policies = {"plain": lc.LinUCB(2, 60), "staged": lc.LinUCB(2, 60, stages=["click"])}
    result = lc.simulate(world, policies, horizon=300, runs=1, seed=4)
    np.testing.assert_array_equal(result.regret("plain"), result.regret("staged"))
