"""Deferred decisions: nothing but the generator changes until an activation, which records a decision of its moment."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make, unit_actions

import latecomer as lc
from latecomer.errors import InputError
from latecomer.policies.base import bulk

ACCEPTED, DUPLICATE, LATE, UNKNOWN = lc.Verdict.ACCEPTED, lc.Verdict.DUPLICATE, lc.Verdict.LATE, lc.Verdict.UNKNOWN


def play(policy: Any, rounds: int, seed: int = 3) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.decide(unit_actions(rng, 4, 2))
        if rng.random() < 0.5:
            policy.convert(decision)


def state_of(policy: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in policy.state.arrays().items()}


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_deferred_decision_chooses_as_a_decision_and_changes_nothing(name: str) -> None:
    """A window of 5, of which one round closes with every decision: the ring is as it was, too."""
    policy, twin = make(name, 2, 5), make(name, 2, 5)
    for one in (policy, twin):
        play(one, 12)
    before = state_of(policy)
    actions = unit_actions(np.random.default_rng(8), 4, 2)
    deferred, decided = policy.decide(actions, deferred=True), twin.decide(actions)
    assert state_of(policy) == before
    assert (deferred.index, deferred.score, deferred.propensity) == (decided.index, decided.score, decided.propensity)
    assert policy.rng.state() == twin.rng.state()
    assert deferred.round == -1


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_an_activation_records_a_decision_of_its_moment(name: str) -> None:
    policy, twin = make(name, 2, 5), make(name, 2, 5)
    for one in (policy, twin):
        play(one, 12)
    actions = unit_actions(np.random.default_rng(8), 4, 2)
    deferred, other = policy.decide(actions, deferred=True), twin.decide(actions, deferred=True)
    assert policy.activate(deferred) is ACCEPTED
    bulk.record(twin, other.action[None], bulk.summarise(actions)[None], np.array([0]))
    assert state_of(policy) == state_of(twin)
    assert policy.activate(deferred) is DUPLICATE
    assert policy.convert(deferred, 0.5) is twin.convert(13, 0.5) is ACCEPTED
    assert policy.revoke(deferred) is twin.revoke(13) is ACCEPTED
    assert state_of(policy) == state_of(twin)


def test_what_is_never_shown_never_enters_V_and_expires(tmp_path: Path) -> None:
    policy = lc.recommended(2, 100, activation_timeout=3, seed=0)
    never, late = (policy.decide(np.eye(2), deferred=True) for _ in range(2))
    assert policy.convert(never) is UNKNOWN
    play(policy, 3)
    policy.save(tmp_path / "policy")
    loaded: Any = lc.load(tmp_path / "policy")
    assert loaded.deferred.waiting == 2
    for one in (policy, loaded):
        play(one, 1)
        assert one.activate(late) is LATE
        assert one.activate(-9) is UNKNOWN
        assert one.activate(2) is DUPLICATE
        assert (one.deferred.waiting, one.deferred.activated, one.deferred.expired) == (0, 0, 2)
        assert np.trace(one.V) == pytest.approx(2 + 4)
    assert state_of(policy) == state_of(loaded)


def test_returns_find_an_activated_decision_when_its_window_has_closed(tmp_path: Path) -> None:
    policy: Any = lc.recommended(2, "7d", reward={"scale": 200}, returns="60d", seed=0)
    day = 86_400.0
    decision = policy.decide(np.eye(2), at=0.0, deferred=True)
    assert policy.activate(decision, at=day) is ACCEPTED
    for name in "xy":
        assert policy.convert(decision, 100.0, at=2 * day, conversion_id=name) is ACCEPTED
    policy.decide(np.eye(2), at=20 * day)
    policy.decide(np.eye(2), at=20 * day, deferred=True)
    assert policy.convert(decision, 1.0, at=20 * day, conversion_id="late") is LATE
    assert policy.revoke(decision, conversion_id="x", at=21 * day) is ACCEPTED
    policy.save(tmp_path / "policy")
    policy = lc.load(tmp_path / "policy")
    assert policy.correct(decision, 30.0, at=22 * day) is ACCEPTED
    assert policy.B.sum() == pytest.approx(0.15)
    assert policy.revoke(decision, at=68.5 * day) is LATE
    for at, expected in ((134.5 * day, LATE), (136.0 * day, UNKNOWN)):  # activated on day 1, and twice 67 days
        policy.decide(np.eye(2), at=at, deferred=True)
        assert policy.revoke(decision, at=at) is expected


def test_a_window_in_time_begins_with_the_activation() -> None:
    policy = lc.OTFLinUCB(2, "10s", activation_timeout="1h")
    decision = policy.decide(np.eye(2), at=0.0, deferred=True)
    assert policy.activate(decision, at=1000.0) is ACCEPTED
    assert policy.convert(decision, at=1010.0) is ACCEPTED
    other = policy.decide(np.eye(2), at=1010.0, deferred=True)
    assert policy.activate(other, at=1010.0 + 3601.0) is LATE
    assert policy.deferred.find_activated(1) is not None
    policy.decide(np.eye(2), at=5000.0)
    assert policy.activate(decision, at=5000.0) is LATE, "its window has closed, and it is forgotten"
    assert policy.convert(decision, at=5000.0) is UNKNOWN


@pytest.mark.parametrize(
    ("window", "timeout", "message"),
    [
        (10, "1h", "activation_timeout must be a number of rounds, as the window is"),
        ("10s", 5, "activation_timeout must be a time such as '1h', as the window is"),
        ("10s", "soon", "activation_timeout must be a whole number"),
        (10, -1, "activation_timeout must be at least 0"),
    ],
)
def test_an_activation_timeout_that_is_none_is_refused(window: Any, timeout: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        lc.OTFLinUCB(2, window, activation_timeout=timeout)
    assert caught.value.field == "activation_timeout"


def test_a_bad_set_defers_nothing() -> None:
    policy = lc.OTFLinTS(2, 10, seed=0)
    before = policy.rng.state()
    with pytest.raises(InputError, match="norm"):
        policy.decide([[3.0, 0.0]], deferred=True)
    assert (policy.rng.state(), policy.deferred.next_number) == (before, 1)
