"""Decisions that are replayed from a log lead to the same policy, bit for bit."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make, unit_actions

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import UNSTAMPED
from latecomer.errors import InputError
from latecomer.policies.base import bulk
from latecomer.policies.persistence.snapshot import PolicySnapshot

MINUTE = 60_000_000
SPANS: dict[str, dict[str, Any]] = {
    "rounds": {"window": 7},
    "time": {"window": timedelta(minutes=7)},
    "grace": {"window": timedelta(minutes=7), "grace": timedelta(minutes=9)},
}


def history(policy: Any, *, in_time: bool) -> list[tuple[Any, ...]]:
    """Make decisions and conversions, and return a log of them; in time, some arrive before their own decision."""
    rng = np.random.default_rng(3)
    events: list[tuple[Any, ...]] = []
    now = 0
    for t in range(1, 31):
        now += int(rng.integers(0, 3)) * MINUTE if in_time else 1
        actions = unit_actions(rng, int(rng.integers(1, 6)), 2)
        decision = policy.decide(actions, at=now / 1e6) if in_time else policy.decide(actions)
        events.append(
            ("decision", decision.action, bulk.latest_summary(policy, actions), now if in_time else UNSTAMPED)
        )
        for round in rng.integers(1, t + 1, rng.integers(0, 3)).tolist():
            came = now - int(rng.integers(0, 7)) * MINUTE
            policy.convert(round, 0.75, at=came / 1e6) if in_time else policy.convert(round, 0.75)
            events.append(("conversion", round, came if in_time else UNSTAMPED))
    return events


def replay(policy: Any, events: list[tuple[Any, ...]]) -> None:
    for kind, *event in events:
        if kind == "decision":
            action, summary, stamp = event
            bulk.record(policy, action[None], summary[None], np.array([stamp]))
        else:
            round, stamp = event
            bulk.convert(policy, np.array([round]), np.array([0.75]), np.array([stamp]))


def assert_same(policy: Any, other: Any) -> None:
    mine, theirs = policy.state.arrays(), other.state.arrays()
    assert mine.keys() == theirs.keys()
    for name in mine:
        if name.startswith("state/"):
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
    assert policy.rng.state() == other.rng.state()


@pytest.mark.parametrize("unit", SPANS)
@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_replayed_policy_is_the_one_that_decided(name: str, unit: str) -> None:
    live, again = make(name, 2, **SPANS[unit]), make(name, 2, **SPANS[unit])
    replay(again, history(live, in_time=unit != "rounds"))
    assert_same(live, again)
    actions = unit_actions(np.random.default_rng(5), 4, 2)
    moment = {} if unit == "rounds" else {"at": 1e6}
    one, two = live.decide(actions, **moment), again.decide(actions, **moment)
    assert (one.index, one.score) == (two.index, two.score)


@pytest.mark.parametrize("unit", SPANS)
@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_snapshot_and_the_actions_of_open_rounds_make_the_whole_policy(name: str, unit: str) -> None:
    live, in_time = make(name, 2, **SPANS[unit]), unit != "rounds"
    decisions = [event for kind, *event in history(live, in_time=in_time) if kind == "decision"]
    actions, stamps = np.array([event[0] for event in decisions]), np.array([event[2] for event in decisions])
    snapshot = PolicySnapshot.from_bytes(PolicySnapshot.capture(live).to_bytes(), name="it")
    held = slice(snapshot.kept - 1, snapshot.rounds)
    again = snapshot.restore(actions[held], (stamps if in_time else np.arange(1, len(actions) + 1))[held])
    sets = unit_actions(np.random.default_rng(5), 4, 2)
    for i in range(10):
        at = {"at": (stamps[-1] + i * MINUTE) / 1e6} if in_time else {}
        one, two = live.decide(sets, **at), again.decide(sets, **at)
        assert (one.index, one.score) == (two.index, two.score)


@pytest.mark.parametrize("name", ["MaturedLinTS", "ImputedLinTS"])
def test_a_conversion_before_its_own_decision_counts_and_has_no_delay(name: str) -> None:
    live, action, came = make(name, 2, **SPANS["time"]), np.array([[0.6, 0.0]]), np.array([0, 4, 6]) * MINUTE
    for at in (60, 300, 360):
        live.decide(action, at=at)
    verdicts, delays = bulk.convert(live, np.array([1, 2, 3]), np.ones(3), came)
    assert verdicts.tolist() == [ACCEPTED] * 3
    assert delays.tolist() == [-1, -1, 0]
    np.testing.assert_allclose(live.B, [1.8, 0.0], rtol=1e-15)
    live.decide(action, at=3600)  # all have closed
    counts = live.state.array("closed_delays" if name == "ImputedLinTS" else "events")
    assert counts.tolist() == [1.0] + [0.0] * 31


def test_summaries_must_fit() -> None:
    policy = make("MaturedLinTS", 2, 7)
    with pytest.raises(InputError, match=r"summaries must be an \(N, 4\) array, a row each; got \(1, 3\)"):
        bulk.record(policy, np.eye(2)[:1], np.zeros((1, 3), np.int16), np.array([UNSTAMPED]))
    assert policy.rounds == 0
