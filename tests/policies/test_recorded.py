"""Decisions that are replayed from what a log keeps lead to the same policy, bit for bit."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from traces import EVERY_POLICY, make, unit_actions

from latecomer.core.state import UNSTAMPED
from latecomer.errors import InputError
from latecomer.policies import recorded
from latecomer.policies.hollow import Hollow

MINUTE = 60_000_000
SPANS = {"rounds": 7, "time": timedelta(minutes=7)}


def history(policy: Any, *, in_time: bool) -> list[tuple[Any, ...]]:
    """Decisions and conversions, with what a log would say of each."""
    rng = np.random.default_rng(3)
    told: list[tuple[Any, ...]] = []
    now = 0
    for t in range(1, 61):
        now += int(rng.integers(0, 3)) * MINUTE if in_time else 1
        actions = unit_actions(rng, int(rng.integers(1, 6)), 2)
        decision = policy.decide(actions, at=now / 1e6) if in_time else policy.decide(actions)
        told.append(("decision", decision.action, recorded.offer(policy, actions), now if in_time else UNSTAMPED))
        for round in rng.integers(1, t + 1, rng.integers(0, 3)).tolist():
            policy.convert(round, 0.75, at=now / 1e6) if in_time else policy.convert(round, 0.75)
            told.append(("conversion", round, now if in_time else UNSTAMPED))
    return told


def replay(policy: Any, told: list[tuple[Any, ...]]) -> None:
    for kind, *event in told:
        if kind == "decision":
            action, offer, stamp = event
            recorded.record(policy, action[None], offer[None], np.array([stamp]))
        else:
            round, stamp = event
            recorded.credit(policy, np.array([round]), np.array([0.75]), np.array([stamp]))


def assert_same(policy: Any, other: Any) -> None:
    mine, theirs = policy._memory.arrays(), other._memory.arrays()
    assert mine.keys() == theirs.keys()
    for name in mine:
        if name.startswith("state/"):
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
    assert policy._randomness.state() == other._randomness.state()


@pytest.mark.parametrize("unit", SPANS)
@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_replay_is_the_policy_that_decided(name: str, unit: str) -> None:
    live, again = make(name, 2, SPANS[unit]), make(name, 2, SPANS[unit])
    replay(again, history(live, in_time=unit == "time"))
    assert_same(live, again)
    actions = unit_actions(np.random.default_rng(5), 4, 2)
    moment = {} if unit == "rounds" else {"at": 1e6}
    one, two = live.decide(actions, **moment), again.decide(actions, **moment)
    assert (one.index, one.score) == (two.index, two.score)


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_policy_without_its_actions_is_whole_once_it_has_them(name: str) -> None:
    live = make(name, 2, 7)
    told = history(live, in_time=False)
    actions = np.array([event[0] for kind, *event in told if kind == "decision"])
    hollow = Hollow.from_bytes(Hollow.of(live).to_bytes(), name="it")
    held = slice(hollow.oldest - 1, hollow.rounds)
    again = hollow.filled(actions[held], np.arange(1, len(actions) + 1)[held])
    sets = unit_actions(np.random.default_rng(5), 4, 2)
    for _ in range(20):
        one, two = live.decide(sets), again.decide(sets)
        assert (one.index, one.score) == (two.index, two.score)


def test_offers_must_fit() -> None:
    policy = make("MaturedLinTS", 2, 7)
    with pytest.raises(InputError, match=r"offers must be an \(N, 4\) array, a row each; got \(1, 3\)"):
        recorded.record(policy, np.eye(2)[:1], np.zeros((1, 3), np.int16), np.array([UNSTAMPED]))
    assert policy.rounds == 0
