"""Peers: the two ways of feeding, by hand; and each library, where it is installed."""

import warnings
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import MissingPackageError
from latecomer.experiments.arena.peers import libraries
from latecomer.experiments.arena.peers.feeding import Fed
from latecomer.experiments.arena.peers.table import PEERS, find_peers

WORLD = lc.World(theta=[0.2, 0.7], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=5))


class Diary:
    """A learner that writes down what it is told, and always plays the first action."""

    def __init__(self, seed: int) -> None:
        self.round = 0
        self.told: list[tuple[int, int, float]] = []

    def choose(self, actions: Any) -> tuple[int, Any]:
        self.round += 1
        return 0, self.round

    def learn(self, choice: Any, reward: float) -> None:
        self.told.append((self.round, choice, reward))


def feed(feeding: Any) -> list[tuple[int, int, float]]:
    """Window 2: round 1 converts after 2 rounds, round 2 after 3, too late, and round 4 at once."""
    diary = Diary(0)
    rule = Fed(lambda _: diary, 2, feeding, "diary").fresh(0)
    for t in range(1, 8):
        rule.decide(np.eye(2))
        for s in {3: [1], 4: [4], 5: [2]}.get(t, []):
            rule.convert(s)
    return diary.told


def test_waiting_learns_from_closed_rounds_alone() -> None:
    """Round s is learnt from before decision s + 3, so after s + 2 decisions."""
    assert feed("waiting") == [(3, 1, 1.0), (4, 2, 0.0), (5, 3, 0.0), (6, 4, 1.0)]


def test_at_once_learns_a_zero_and_then_a_one() -> None:
    zeros = [(t, t, 0.0) for t in range(1, 8)]
    assert sorted(feed("at once")) == sorted([*zeros, (3, 1, 1.0), (4, 4, 1.0)])


def test_a_peer_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(libraries, "import_module", missing)
    with pytest.raises(MissingPackageError, match=r"the arena's peers need the package river: .*latecomer\[peers\]"):
        libraries.River(0)


def test_peers_with_a_model_for_each_arm_need_fixed_arms() -> None:
    assert set(find_peers(fixed_arms=False)) <= set(find_peers(fixed_arms=True)) <= set(PEERS)
    assert not any(name.startswith(("river", "MABWiser", "contextual")) for name in find_peers(fixed_arms=False))


@pytest.mark.parametrize("name", PEERS)
def test_a_library_learns_which_arm_is_better(name: str) -> None:
    if name not in find_peers(fixed_arms=True):
        pytest.skip("not installed: the extra `peers` has it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = lc.simulate(WORLD, {name: PEERS[name](2, 20)}, horizon=120, runs=1, seed=1, progress=False)
    assert result.final(name)[0] < 28.5  # uniform play loses 30
