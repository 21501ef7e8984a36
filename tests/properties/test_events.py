"""Properties of every policy: a state follows from its events alone."""

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_cases import EVERY_POLICY, make, unit_actions

import latecomer as lc

DIM = 2
SETS = [unit_actions(np.random.default_rng(i), 4, DIM) for i in range(80)]
names = st.sampled_from(sorted(EVERY_POLICY))
windows = st.sampled_from([0, 1, 4, 30])
# An event is a decision (None), or a conversion of the round so many rounds back, with its value; negative: the future.
events = st.lists(
    st.one_of(st.none(), st.tuples(st.integers(-2, 35), st.floats(0, 1, width=32))), min_size=1, max_size=80
)
random_traces = settings(deadline=None, derandomize=True)


def apply_events(policy: Any, trace: list[tuple[int, float] | None]) -> list[tuple[int, float]]:
    """Apply the events; return the index and the score of each decision."""
    chosen = []
    for event in trace:
        if event is None:
            decision = policy.decide(SETS[policy.rounds % len(SETS)])
            chosen.append((decision.index, decision.score))
        else:
            policy.convert(policy.rounds - event[0], event[1])
    return chosen


@random_traces
@given(names, windows, events)
def test_the_same_events_give_the_same_policy(name: str, window: int, trace: list[Any]) -> None:
    live, replayed = make(name, DIM, window), make(name, DIM, window)
    assert apply_events(live, trace) == apply_events(replayed, trace)
    np.testing.assert_array_equal(live.theta_hat, replayed.theta_hat)
    assert live.width == replayed.width


@random_traces
@given(names, windows, events, st.integers(0, 80))
def test_a_policy_saved_and_loaded_anywhere_in_a_trace_continues_as_before(
    name: str, window: int, trace: list[Any], cut: int
) -> None:
    live = make(name, DIM, window)
    apply_events(live, trace[:cut])
    with tempfile.TemporaryDirectory() as folder:
        live.save(Path(folder) / "policy")
        loaded = lc.load(Path(folder) / "policy")
    assert apply_events(live, trace[cut:]) == apply_events(loaded, trace[cut:])
    np.testing.assert_array_equal(live.theta_hat, loaded.theta_hat)
    assert (live.width, live.pending) == (loaded.width, loaded.pending)


@random_traces
@given(names, st.integers(1, 30), st.data())
def test_conversions_in_any_order_give_the_same_estimate(name: str, count: int, data: st.DataObject) -> None:
    policy = make(name, DIM, 30)
    rounds = [policy.decide(actions).round for actions in SETS[:count]]
    values = data.draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
    other = copy.deepcopy(policy)
    arrivals = list(zip(rounds, values, strict=True))
    for round, value in arrivals:
        assert policy.convert(round, value) is lc.Verdict.ACCEPTED
    for round, value in data.draw(st.permutations(arrivals)):
        assert other.convert(round, value) is lc.Verdict.ACCEPTED
    np.testing.assert_allclose(policy.theta_hat, other.theta_hat, rtol=1e-12, atol=1e-13)


@random_traces
@given(names, windows, events, st.integers(0, 79))
def test_a_revoked_conversion_leaves_B_as_it_was(name: str, window: int, trace: list[Any], back: int) -> None:
    policy = make(name, DIM, window)
    apply_events(policy, trace)
    before = policy.B
    round = policy.rounds - back
    if policy.convert(round, 0.7) is lc.Verdict.ACCEPTED:
        assert policy.revoke(round) is lc.Verdict.ACCEPTED
    np.testing.assert_allclose(policy.B, before, rtol=1e-12, atol=1e-13)


@random_traces
@given(windows, events)
def test_a_conversion_that_is_not_accepted_changes_nothing(window: int, trace: list[Any]) -> None:
    policy = lc.OTFLinUCB(DIM, window)
    for event in trace:
        if event is None:
            policy.decide(SETS[policy.rounds % len(SETS)])
        else:
            before = policy.state.record.tobytes(), policy.state.ring.tobytes()
            if policy.convert(policy.rounds - event[0], event[1]) is not lc.Verdict.ACCEPTED:
                assert (policy.state.record.tobytes(), policy.state.ring.tobytes()) == before


@random_traces
@given(st.floats(1e-2, 1e3), st.integers(0, 2**32))
def test_scaling_a_sample_by_any_factor_changes_no_choice(scale: float, seed: int) -> None:
    assert_scaled(scale, seed, rounds=25)


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1.0, 7.0, 1e6])
def test_scaling_a_sample_changes_no_choice(scale: float) -> None:
    assert_scaled(scale, 1, rounds=60)


def assert_scaled(scale: float, seed: int, *, rounds: int) -> None:
    """Scaling θ̃ by any positive number leaves every choice unchanged: ⟨a, sθ̃⟩ = s⟨a, θ̃⟩.

    θ̃ is linear in (B, z), so values and exploration scaled by s scale θ̃ by s.
    """
    small, large = (lc.LinTS(DIM, 30, seed=seed, exploration=exploration) for exploration in (1.0, scale))
    rng = np.random.default_rng(0)
    for actions in SETS[:rounds]:
        first, second = small.decide(actions), large.decide(actions)
        assert first.index == second.index
        assert second.score == pytest.approx(scale * first.score, rel=1e-9)
        if rng.random() < 0.6:
            # Above 1 a value cannot be credited from outside: scale B itself.
            small.convert(first)
            large.convert(second)
            large.state.record["B"][0] += (scale - 1) * second.action
