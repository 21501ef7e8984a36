"""One sweep of data augmentation, from a state that is held still: frequencies against the formulas."""

from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.core.delay_curve import BINS, bin_edges
from latecomer.core.imputation import PRIOR_DELAYS, bin_of, impute, sample_delay_law
from latecomer.tiers.interpreter import view

SWEEPS = pytest.mark.parametrize("count", [2000, pytest.param(10_000, marks=pytest.mark.soak)])
WINDOW = 10  # every delay has a bin of its own
CURVE = np.minimum(1.0, np.array([0.0, 0.2, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.98, *[1.0] * (BINS - 10)]))


@pytest.fixture
def policy() -> Any:
    """Seven rounds, whose actions tell from a sum which of them are in it; one has converted, one was taken back."""
    made = lc.ImputedLinTS(2, WINDOW, seed=0)
    for action in ([0.1, 0.0], [0.2, 0.0], [0.4, 0.0], [0.0, 0.1], [0.0, 0.2], [0.0, 0.4], [0.8, 0.0]):
        made.decide([action])
        if made.rounds == 3:
            made.convert(2, 0.5)  # of delay 1
            made.convert(1)
            made.revoke(1)
    state = made.state.record
    state["theta_tilde"] = [1.2, -1.0]  # p: .12, .24, .48, and 0, 0, 0 for a negative rate, and .96
    state["curve"] = CURVE
    return made


def sweeps(policy: Any, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rounds that were imputed, sweep by sweep; all delays; and how many of them."""
    state, ring = policy.state.record, policy.state.ring
    sums, delays, counts = np.empty((count, 2)), np.empty((count, BINS)), np.empty(count)
    seen, held = view(state)[0], view(ring)
    for i in range(count):
        impute(seen, held)
        sums[i], delays[i], counts[i] = state["imputed"][0], state["delays"][0], state["imputed_count"][0]
    tenths = np.rint(sums * 10).astype(int)
    np.testing.assert_allclose(sums * 10, tenths, atol=1e-9)
    bits = np.stack([tenths[:, 0] & 1, tenths[:, 0] & 2, tenths[:, 0] & 4, *(tenths[:, [1, 1, 1]] & [1, 2, 4]).T])
    return np.vstack([bits, tenths[:, 0] & 8]).T > 0, delays, counts


@SWEEPS
def test_open_rounds_convert_with_the_right_probability_and_delay(policy: Any, count: int) -> None:
    chosen, delays, counts = sweeps(policy, count)
    np.testing.assert_array_equal(chosen.sum(axis=1), counts)
    ages = 7 - np.arange(1, 8)
    p, F = np.clip(np.array([0.12, 0.24, 0.48, 0, 0, 0, 0.96]), 0, 1), CURVE[ages]
    expected = p * (1 - F) / (1 - p * F)
    expected[[0, 1]] = 0.0  # revoked, and converted: nothing is left to come
    sigma = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(chosen.mean(axis=0) - expected) <= 4.5 * sigma).all()
    assert expected[[2, 6]].min() > 0.1
    # the delay of one that will convert has the law beyond its age
    law = np.diff(CURVE)
    hoped = np.zeros(BINS)
    for s in (2, 6):
        hoped[ages[s] :] += expected[s] * law[ages[s] :] / (1 - F[s])
    hoped[1] += 1.0  # the delay that was seen; the one taken back is none
    np.testing.assert_allclose(delays.mean(axis=0), hoped, atol=4.5 * 0.5 / np.sqrt(count))
    assert set(np.unique(delays[:, WINDOW + 1 :])) == {0.0}


@SWEEPS
def test_rounds_convert_independently(policy: Any, count: int) -> None:
    chosen, _, _ = sweeps(policy, count)
    assert abs(np.corrcoef(chosen[:, 2], chosen[:, 6])[0, 1]) < 4.5 / np.sqrt(count)


@SWEEPS
@pytest.mark.parametrize(("now", "covered"), [(7, 5), (13, WINDOW + 1)])
def test_the_law_is_dirichlet_over_what_can_have_been_seen(policy: Any, count: int, now: int, covered: int) -> None:
    """By round 2, the oldest but one: five rounds, or all of the window."""
    state, ring = policy.state.record, policy.state.ring
    seen = np.zeros(BINS)
    seen[[0, 1, 5, 10]] = 7, 3, 1, 12
    state["delays"], state["current_stamp"] = seen, now
    laws = np.empty((count, BINS))
    viewed, held = view(state)[0], view(ring)
    for i in range(count):
        sample_delay_law(viewed, held)
        laws[i] = np.diff(state["curve"][0])
    assert state["curve"][0, 0] == 0.0
    assert state["curve"][0, -1] == 1.0
    assert (laws >= 0).all()
    alpha = (seen + PRIOR_DELAYS * np.diff(bin_edges(WINDOW)) / covered)[:covered]
    total = alpha.sum()
    mean, variance = alpha / total, alpha * (total - alpha) / (total**2 * (total + 1))
    np.testing.assert_allclose(laws[:, :covered].mean(axis=0), mean, atol=4.5 * np.sqrt(variance.max() / count))
    np.testing.assert_allclose(laws[:, :covered].var(axis=0), variance, rtol=10 / np.sqrt(count), atol=1e-6)
    np.testing.assert_array_equal(laws[:, covered:], 0.0)


def test_where_nothing_can_have_been_seen_no_more_is_to_come() -> None:
    policy = lc.ImputedLinTS(2, 10**9, seed=0)
    for _ in range(50):
        policy.convert(policy.decide(np.eye(2)))
        assert policy.state.number("imputed_count") == 0.0
    np.testing.assert_array_equal(policy.state.array("curve"), 1.0)


@pytest.mark.parametrize("window", [0, 1, 10, 31, 32, 1000])
def test_every_delay_of_a_window_has_its_bin(window: int) -> None:
    edges = bin_edges(window)
    assert (edges[0], edges[-1]) == (0, window + 1)
    assert (np.diff(edges) >= 0).all()
    state = lc.ImputedLinTS(2, window).state.record
    for delay in range(window + 1):
        j = bin_of(view(state)[0], delay)
        assert edges[j] <= delay < edges[j + 1]


def test_closed_delays_are_kept_and_open_ones_are_not() -> None:
    policy = lc.ImputedLinTS(2, 3, seed=0)
    for t in range(1, 8):
        policy.decide(np.eye(2))
        if t % 2 == 0:
            policy.convert(t - 1)  # rounds 1, 3, 5: delay 1
    kept = policy.state.array("closed_delays")
    assert kept[:4].tolist() == [0.0, 2.0, 0.0, 0.0]  # 1 and 3 have closed at round 7
    assert kept.sum() == 2.0
