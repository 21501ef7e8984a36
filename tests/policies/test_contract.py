"""The contract that every policy keeps."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make, unit_actions

import latecomer as lc

SETS = [unit_actions(np.random.default_rng(i), 4, 2) for i in range(40)]


@pytest.fixture(params=EVERY_POLICY, scope="module")  # one policy after the other: each is compiled once, by one worker
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def snapshot(policy: Any) -> tuple[bytes, bytes, Any]:
    """Return everything that a policy keeps, its generator included."""
    state = policy.state
    return state.record[state.saved_fields()].tobytes(), state.ring.tobytes(), policy.rng.state()


def test_a_policy_fulfils_the_protocol_and_starts_empty(name: str) -> None:
    policy = make(name, 2, 10)
    assert isinstance(policy, lc.Policy)
    assert (policy.dim, policy.window, policy.rounds, policy.pending) == (2, 10, 0, 0)
    np.testing.assert_array_equal(policy.theta_hat, np.zeros(2))
    assert policy.pending_width == 0.0
    assert name.split("-", maxsplit=1)[0] in repr(policy)


def test_rounds_count_from_one_and_the_action_is_a_copy(name: str) -> None:
    policy = make(name, 2, 10)
    actions = SETS[0].copy()
    first, second = policy.decide(actions), policy.decide(actions)
    assert (first.round, second.round, policy.rounds) == (1, 2, 2)
    kept = first.action.copy()
    np.testing.assert_array_equal(kept, actions[first.index])
    actions[:] = 0.0
    np.testing.assert_array_equal(first.action, kept)
    with pytest.raises(AttributeError):
        first.round = 5


def test_only_an_accepted_conversion_changes_anything(name: str) -> None:
    policy = make(name, 2, 2)
    decision = policy.decide(SETS[0])
    assert policy.convert(decision) is lc.Verdict.ACCEPTED
    for expected, round in ((lc.Verdict.DUPLICATE, 1), (lc.Verdict.UNKNOWN, 2), (lc.Verdict.UNKNOWN, 0)):
        before = snapshot(policy)
        assert policy.convert(round) is expected
        assert snapshot(policy) == before
    policy.decide(SETS[1])
    policy.decide(SETS[2])
    policy.decide(SETS[3])
    before = snapshot(policy)
    assert policy.convert(1) is lc.Verdict.LATE
    assert policy.revoke(1) is lc.Verdict.LATE
    assert policy.convert(-5) is lc.Verdict.UNKNOWN
    assert policy.convert(10**30) is lc.Verdict.UNKNOWN
    assert snapshot(policy) == before


@pytest.mark.parametrize("window", [0, 1, 5])
def test_a_delay_of_the_window_is_accepted_and_a_longer_one_is_late(name: str, window: int) -> None:
    policy = make(name, 2, window)
    for i in range(window + 1):
        policy.decide(SETS[i])
    assert policy.convert(1) is lc.Verdict.ACCEPTED  # delay m
    policy.decide(SETS[window + 1])
    policy.decide(SETS[window + 2])
    assert policy.convert(2) is lc.Verdict.LATE  # delay m + 1


def test_pending_counts_the_rounds_whose_conversion_would_be_accepted(name: str) -> None:
    policy = make(name, 2, 5)
    rng = np.random.default_rng(0)
    for actions in SETS[:40]:
        policy.decide(actions)
        if rng.random() < 0.5:
            policy.convert(int(rng.integers(1, policy.rounds + 1)))
        would = sum(policy.state.judge_conversion(s, -(2**63)) == 0 for s in range(1, policy.rounds + 1))
        assert policy.pending == would


def test_value_is_credited_in_proportion(name: str) -> None:
    """At once, or, by policies that wait, when the window has closed."""
    policy = make(name, 2, 5)
    decision = policy.decide(SETS[0])
    policy.convert(decision, 0.25)
    if name.startswith("Waiting"):
        np.testing.assert_array_equal(policy.B, np.zeros(2))
        for actions in SETS[1:7]:
            policy.decide(actions)
    np.testing.assert_allclose(policy.B, 0.25 * decision.action, rtol=1e-15)


def test_reading_properties_changes_nothing(name: str) -> None:
    policy = make(name, 2, 5)
    for actions in SETS[:9]:
        policy.convert(policy.decide(actions))
    state = policy.state
    before = {field: state.array(field) for field in state.saved_fields()}
    ring, generator = state.ring.tobytes(), policy.rng.state()
    readings = [(policy.theta_hat.tolist(), policy.width, policy.pending_width, policy.pending) for _ in range(2)]
    assert readings[0] == readings[1]
    for field, value in before.items():
        np.testing.assert_array_equal(state.array(field), value, err_msg=field)
    assert (state.ring.tobytes(), policy.rng.state()) == (ring, generator)


def test_a_conversion_of_value_zero_is_accepted_once(name: str) -> None:
    policy = make(name, 2, 5)
    decision = policy.decide(SETS[0])
    assert policy.convert(decision, 0.0) is lc.Verdict.ACCEPTED
    assert policy.convert(decision, 1.0) is lc.Verdict.DUPLICATE
    np.testing.assert_array_equal(policy.B, np.zeros(2))


def test_a_revoked_conversion_is_gone_for_good(name: str) -> None:
    policy = make(name, 2, 5)
    decision = policy.decide(SETS[0])
    assert policy.revoke(decision) is lc.Verdict.UNKNOWN  # nothing to take back yet
    policy.convert(decision, 0.5)
    assert policy.revoke(decision) is lc.Verdict.ACCEPTED
    np.testing.assert_allclose(policy.B, np.zeros(2), atol=1e-16)
    assert policy.revoke(decision) is lc.Verdict.DUPLICATE
    assert policy.convert(decision) is lc.Verdict.DUPLICATE
    assert policy.revoke(99) is lc.Verdict.UNKNOWN
    assert policy.pending == 0


def test_decide_many_answers_as_decide_does(name: str) -> None:
    batch, single = make(name, 2, 7), make(name, 2, 7)
    sets = np.stack(SETS[:40])
    decisions = batch.decide_many(sets)
    for decision, actions in zip(decisions, sets, strict=True):
        expected = single.decide(actions)
        assert (decision.round, decision.index, decision.score) == (expected.round, expected.index, expected.score)
        np.testing.assert_array_equal(decision.action, expected.action)
    for field in batch.state.saved_fields():
        if field != "head":  # where in the ring, which may be larger after a batch
            np.testing.assert_array_equal(batch.state.record[field], single.state.record[field])
    assert snapshot(batch)[2] == snapshot(single)[2]


def test_decide_many_takes_sets_of_different_sizes(name: str) -> None:
    batch, single = make(name, 2, 7), make(name, 2, 7)
    sets = [actions[: 1 + i % 4] for i, actions in enumerate(SETS[:20])]
    decisions = batch.decide_many(sets)
    expected = [single.decide(actions) for actions in sets]
    assert [(d.round, d.index, d.score) for d in decisions] == [(d.round, d.index, d.score) for d in expected]
    assert batch.decide_many([]) == []
    after, alike = batch.decide(SETS[3]), single.decide(SETS[3])  # whichever of the two has been called first
    assert (after.round, after.index, after.score) == (alike.round, alike.index, alike.score)


def test_a_refused_batch_decides_nothing(name: str) -> None:
    policy = make(name, 2, 7)
    policy.decide(SETS[0])
    before = snapshot(policy)
    for bad in (np.nan, 2.0):
        spoilt = np.stack(SETS[:3])
        spoilt[2, 1, 0] = bad
        with pytest.raises(lc.errors.InputError, match="in set 2 of the batch"):
            policy.decide_many(spoilt)
        with pytest.raises(lc.errors.InputError, match="in set 1 of the batch"):
            policy.decide_many([SETS[0], spoilt[2], SETS[1][:2]])
        with pytest.raises(lc.errors.InputError):
            policy.decide(spoilt[2])
    assert snapshot(policy) == before


def test_the_same_seed_gives_the_same_decisions(name: str) -> None:
    first, second = make(name, 2, 7), make(name, 2, 7)
    for actions in SETS[:20]:
        assert first.decide(actions).score == second.decide(actions).score
    assert snapshot(first) == snapshot(second)


def test_a_window_in_time_closes_by_the_clock(name: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    policy = make(name, 2, timedelta(hours=1))
    decision = policy.decide(SETS[0], at=start)
    policy.decide(SETS[1], at=start + timedelta(minutes=30))
    assert policy.convert(decision, at=start + timedelta(hours=1)) is lc.Verdict.ACCEPTED  # exactly the window
    assert policy.convert(2, at=start + timedelta(minutes=90, microseconds=1)) is lc.Verdict.LATE
    assert policy.convert(2, at=start + timedelta(minutes=90)) is lc.Verdict.ACCEPTED
    policy.decide(SETS[2], at=start + timedelta(hours=3))
    assert policy.pending == 1
    assert policy.convert(1, at=start) is lc.Verdict.LATE


def test_decide_takes_lists_and_sets_of_changing_size(name: str) -> None:
    policy = make(name, 2, 7)
    assert policy.decide([[1, 0]]).index == 0
    assert policy.decide(((0.5, 0.5), (0.1, 0.2), (0.3, 0.3))).index in (0, 1, 2)
    assert policy.decide(np.asfortranarray(np.eye(2, dtype=np.float32))).index in (0, 1)
    readonly = np.eye(2)
    readonly.flags.writeable = False
    assert policy.decide(readonly).round == 4
    assert policy.decide(np.eye(4)[::2, ::2]).round == 5


def _unaligned(plain: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    room = np.empty(plain.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(plain.shape)
    room[...] = plain
    return room


LAYOUTS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "columns first": np.asfortranarray,
    "every other row": lambda plain: np.repeat(plain, 2, axis=0)[::2],
    "every other column": lambda plain: np.repeat(plain, 2, axis=1)[:, ::2],
    "backwards": lambda plain: plain[::-1].copy()[::-1],
    "a row again and again": lambda plain: np.broadcast_to(plain[0], plain.shape),
    "unaligned": _unaligned,
    "the other byte order": lambda plain: plain.astype(">f8"),
    "single precision": lambda plain: plain.astype(np.float32),
    "one row": lambda plain: plain[:1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", ["OTFLinUCB-exact", "OTFLinTS-heuristic"])
def test_a_set_may_have_any_memory_layout(policy: str, layout: str) -> None:
    plain, other = make(policy, 2, 10), make(policy, 2, 10)
    for actions in SETS[:20]:
        laid = LAYOUTS[layout](actions)
        mine, theirs = other.decide(laid), plain.decide(np.array(laid, np.float64, order="C"))
        assert (mine.index, mine.score, mine.action.tolist()) == (theirs.index, theirs.score, theirs.action.tolist())
