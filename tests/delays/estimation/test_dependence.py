"""The reverse-time log-rank test: equal to its definition, of the right size, of known power."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import latecomer
from latecomer import delays
from latecomer.delays import DependenceTest
from latecomer.delays.distribution import Floats
from latecomer.errors import InputError

WINDOW = 100


def define(came: Floats, watched: Floats, x: Floats) -> tuple[Floats, Floats]:
    """U and Σ, risk set by risk set."""
    score, variance = np.zeros(x.shape[1]), np.zeros((x.shape[1], x.shape[1]))
    for j in np.unique(came):
        risk = (came <= j) & (j <= watched)
        here = risk & (came == j)
        n, d = int(risk.sum()), int(here.sum())
        centred = x[risk] - x[risk].mean(axis=0)
        score += x[here].sum(axis=0) - d * x[risk].mean(axis=0)
        if n > 1:
            variance += d * (n - d) / (n - 1) * centred.T @ centred / n
    return score, variance


def conversions(rng: np.random.Generator, means: Floats) -> tuple[Floats, Floats, Any]:
    """Delays within the window, of decisions watched for 0 to 199 rounds; and which were seen."""
    came = rng.geometric(1.0 / means).astype(np.float64)
    watched = np.minimum(WINDOW, rng.integers(0, 2 * WINDOW, len(means))).astype(np.float64)
    return came, watched, came <= watched


@pytest.mark.parametrize("seed", range(5))
def test_score_and_variance_equal_their_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    came, watched, seen = conversions(rng, np.full(200, 20.0))
    x = np.column_stack([rng.normal(size=200), rng.integers(0, 3, 200), 1e3 + rng.random(200)])[seen]
    found = delays.test_dependence(came[seen], watched[seen], x)
    score, variance = define(came[seen], watched[seen], x)
    inverse = np.linalg.inv(variance)
    assert found.degrees == 3
    assert found.statistic == pytest.approx(score @ inverse @ score, rel=1e-6)
    np.testing.assert_allclose(found.effect, inverse @ score, rtol=1e-5)


def test_categories_are_indicators_of_their_levels() -> None:
    rng = np.random.default_rng(0)
    came, watched, seen = conversions(rng, np.full(400, 30.0))
    level = rng.choice(["a", "b", "c"], 400)
    level[:3] = ["rare", "rarer", "rarest"]
    found = delays.test_dependence(came[seen], watched[seen], level[seen])
    assert found.names == ("a", "b", "c", "other")
    assert found.degrees == 3
    indicators = (np.where(np.isin(level, list("abc")), level, "other")[:, None] == list(found.names)).astype(float)
    score, variance = define(came[seen], watched[seen], indicators[seen])
    assert found.statistic == pytest.approx(score @ np.linalg.pinv(variance, rcond=1e-10) @ score)


def test_times_are_numbers_whatever_their_unit() -> None:
    rng = np.random.default_rng(1)
    came, watched, seen = conversions(rng, np.full(300, 30.0))
    seconds = rng.integers(1_700_000_000, 1_800_000_000, 300)
    plain = delays.test_dependence(came[seen], watched[seen], seconds[seen])
    times = delays.test_dependence(came[seen], watched[seen], seconds[seen].astype("datetime64[s]"))
    assert times.statistic == pytest.approx(plain.statistic)
    assert times.degrees == plain.degrees == 1


def test_two_groups_without_truncation_have_the_statistic_of_another_library() -> None:
    """In reversed time the test is the log-rank test: every delay is an event."""
    from lifelines.statistics import logrank_test

    rng = np.random.default_rng(2)
    came = rng.integers(1, 50, 300).astype(float)
    group = rng.random(300) < 0.4
    found = delays.test_dependence(came, np.full(300, 100.0), group)
    expected = logrank_test(100.0 - came[group], 100.0 - came[~group])
    assert found.statistic == pytest.approx(expected.test_statistic, rel=1e-9)
    assert found.p_value == pytest.approx(expected.p_value, rel=1e-9)


def of_one_law(rng: np.random.Generator) -> DependenceTest:
    came, watched, seen = conversions(rng, np.full(900, 40.0))
    kept = np.flatnonzero(seen)[:300]
    return delays.test_dependence(came[kept], watched[kept], rng.choice(["a", "b", "c"], len(kept)))


def play_adaptively(
    rng: np.random.Generator, means: tuple[float, float] = (40.0, 40.0), rounds: int = 1500
) -> tuple[Any, Any, Any, Any]:
    """Delays, limits, rounds and actions of what is seen of two arms of one rate.

    Every 150 rounds the one that has shown more conversions by then becomes the usual one, in four rounds of five.
    """
    coins = rng.random((rounds, 2))
    delay = rng.geometric(1 / np.array(means), (rounds, 2))
    converts, action, came = coins[:, 0] < 0.4, np.zeros(rounds, np.int64), np.zeros(rounds, np.int64)
    for start in range(0, rounds, 150):
        past = np.arange(start)
        shown = converts[:start] & (came[:start] <= np.minimum(WINDOW, start - 1 - past))
        rates = [shown[action[:start] == arm].sum() / max(1, (action[:start] == arm).sum()) for arm in (0, 1)]
        block = np.arange(start, min(start + 150, rounds))
        any_arm = rng.integers(0, 2, len(block))
        action[block] = np.where(coins[block, 1] < 0.2, any_arm, int(np.argmax(rates)))
        came[block] = delay[block, action[block]]
    watched = np.minimum(WINDOW, rounds - np.arange(rounds) - 1)
    seen = converts & (came <= watched)
    return came[seen], watched[seen], np.flatnonzero(seen), action[seen]


def of_an_adaptive_policy(rng: np.random.Generator) -> DependenceTest:
    came, watched, _, action = play_adaptively(rng)
    return delays.test_dependence(came, watched, action.astype(str))


def of_no_drift_under_an_adaptive_policy(rng: np.random.Generator) -> DependenceTest:
    came, watched, rounds, _ = play_adaptively(rng)
    return delays.test_dependence(came, watched, rounds)


def of_no_drift(rng: np.random.Generator) -> DependenceTest:
    came, watched, seen = conversions(rng, np.full(900, 40.0))
    kept = np.flatnonzero(seen)[:300]
    return delays.test_dependence(came[kept], watched[kept], rng.normal(size=300) - watched[kept] / 50.0)


@pytest.mark.parametrize(
    ("runs", "least", "most"),
    [
        (100, 0.01, 0.11),
        *(pytest.param(*one, marks=pytest.mark.soak) for one in ((300, 0.02, 0.09), (2000, 0.03, 0.07))),
    ],
)
@pytest.mark.parametrize(
    "world", [of_one_law, of_an_adaptive_policy, of_no_drift, of_no_drift_under_an_adaptive_policy]
)
def test_size_is_five_per_cent_at_five_per_cent(
    world: Callable[[np.random.Generator], DependenceTest], runs: int, least: float, most: float
) -> None:
    """Of 300 tests at 5 %, fewer than 2 or more than 9 % reject by chance once in a hundred times.

    Of 100, more than 11 % reject as seldom, and none at all once in 170 times (0.95^100).
    """
    rejected = [world(np.random.default_rng(seed)).p_value < 0.05 for seed in range(runs)]
    assert least <= np.mean(rejected) <= most


SLOW = (45.0, 122.0)
"""Means that differ by a factor of 2.7; of a window of 100 the slow one fills 56 %, the fast one 89 %."""


def of_a_slow_half(rng: np.random.Generator) -> DependenceTest:
    """300 conversions of decisions that are 0 to 199 rounds old."""
    slow = rng.random(3000) < 0.5
    came, watched, seen = conversions(rng, np.where(slow, SLOW[1], SLOW[0]))
    kept = np.flatnonzero(seen)[:300]
    return delays.test_dependence(came[kept], watched[kept], slow[kept])


def of_a_slow_half_in_closed_rounds(rng: np.random.Generator) -> DependenceTest:
    slow = rng.random(3000) < 0.5
    came = rng.geometric(1 / np.where(slow, SLOW[1], SLOW[0])).astype(np.float64)
    kept = np.flatnonzero(came <= WINDOW)[:300]
    return delays.test_dependence(came[kept], np.full(300, float(WINDOW)), slow[kept])


def of_a_slow_arm_under_an_adaptive_policy(rng: np.random.Generator) -> DependenceTest:
    """920 rounds have 300 conversions; two arms of one rate, of which the policy likes the fast one."""
    came, watched, _, action = play_adaptively(rng, SLOW, rounds=920)
    return delays.test_dependence(came, watched, action == 1)


@pytest.mark.parametrize("runs", [150, pytest.param(2000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("world", "power"),
    [
        (of_a_slow_half, 0.65),
        (of_a_slow_half_in_closed_rounds, 0.76),
        (of_a_slow_arm_under_an_adaptive_policy, 0.355),
    ],
)
def test_power_at_five_per_cent_for_means_of_a_factor_2_7(
    world: Callable[[np.random.Generator], DependenceTest], power: float, runs: int
) -> None:
    """The power that the documentation states, within 4 standard errors; and the slow one is said to be slow."""
    found = [world(np.random.default_rng(seed)) for seed in range(runs)]
    rejected = [each.p_value < 0.05 and each.effect[each.names.index("True")] > 0.0 for each in found]
    assert abs(np.mean(rejected) - power) <= 4 * np.sqrt(power * (1 - power) / runs)


def play_recommended(rng: np.random.Generator, means: tuple[float, float], rounds: int = 1500) -> DependenceTest:
    """Test what `recommended` has seen of two arms of one rate."""
    policy = latecomer.recommended(2, window=WINDOW, seed=int(rng.integers(2**31)))
    came, action = np.zeros(rounds, np.int64), np.zeros(rounds, np.int64)
    converts, due = rng.random(rounds) < 0.4, dict[int, list[int]]()
    for now in range(rounds):
        for round in due.pop(now, []):
            policy.convert(round)
        decision = policy.decide(np.eye(2))
        action[now], came[now] = decision.index, rng.geometric(1 / means[decision.index])
        if converts[now] and came[now] <= WINDOW:
            due.setdefault(now + int(came[now]), []).append(decision.round)
    watched = np.minimum(WINDOW, rounds - np.arange(rounds) - 1)
    seen = converts & (came <= watched)
    return delays.test_dependence(came[seen], watched[seen], action[seen] == 1)


@pytest.mark.soak
@pytest.mark.parametrize(("means", "least", "most"), [((40.0, 40.0), 0.03, 0.07), (SLOW, 0.22, 0.34)])
def test_size_and_power_where_recommended_chose(means: tuple[float, float], least: float, most: float) -> None:
    """The size holds whoever chooses; the power falls to some 28 %, for the slow arm is hardly played any more."""
    rejected = [play_recommended(np.random.default_rng(seed), means).p_value < 0.05 for seed in range(1000)]
    assert least <= np.mean(rejected) <= most


def test_nothing_to_test_rejects_nothing() -> None:
    assert delays.test_dependence([], [], []).p_value == 1.0
    same = delays.test_dependence([1.0, 2.0], [3.0, 3.0], ["a", "a"])
    assert (same.degrees, same.p_value, same.rejects) == (0, 1.0, False)


@pytest.mark.parametrize(
    ("came", "watched", "x", "rule"),
    [
        ([5.0], [4.0], ["a"], r"delay 5 with limit 4 in row 0: leave out"),
        ([-1.0], [4.0], ["a"], "at least 0"),
        ([float("nan")], [4.0], ["a"], "at least 0"),
        ([1.0, 2.0], [4.0], ["a"], "lists of one length"),
        ([1.0], [4.0], ["a", "b"], "a row for each of the 1 delays"),
        ([1.0], [4.0], [float("nan")], "x must be finite"),
        ([1.0], [4.0], [["a", "b"]], "one column where it is categories"),
    ],
)
def test_what_cannot_be_tested_is_refused(came: Any, watched: Any, x: Any, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        delays.test_dependence(came, watched, x)
