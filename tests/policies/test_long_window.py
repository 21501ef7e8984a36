"""Windows far longer than the bandit has lived: what it knows must not drown in what it cannot know yet."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make

import latecomer as lc

RATES = [0.02, 0.02, 0.03, 0.03, 0.05]
WINDOWS = (50, 5_000, 50_000, 500_000)
FOLLOWERS = ("recommended", "MaturedLinTS", "MaturedLinUCB", "ImputedLinTS", "LogisticLinTS")
"""The policies that estimate the delay curve."""


LIMIT = {"LogisticLinTS": 4.5}
"""Of a score, 3 where nothing is said; a logit of 4.5 is a rate of 99 %."""


def fresh(name: str, window: Any) -> Any:
    """LogisticLinTS scores in logits, from a prior as wide as rates of one in a million: here its own optimum plays."""
    if name == "recommended":
        return lc.recommended(2, window, seed=0)
    return make(name, 2, window, **({"exploration": 0.0} if name == "LogisticLinTS" else {}))


def regrets(window: int, *, horizon: int, runs: int) -> Any:
    world = lc.World(theta=RATES, actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=10))
    policies = {"it": lc.recommended(5, window)}
    return lc.simulate(world, policies, horizon=horizon, runs=runs, seed=0, progress=False).final("it")


def test_every_policy_that_follows_delays_is_tried() -> None:
    followers = {name for name in EVERY_POLICY if make(name, 2, 10).delay_curve is not None}
    assert followers == {*FOLLOWERS} - {"recommended"}


@pytest.mark.parametrize(
    ("window", "rounds"),
    [
        *((w, 70) for w in (10, 10**4, 10**9)),
        *(pytest.param(10**k, 200, marks=pytest.mark.soak) for k in (1, 2, 4, 6, 9)),
    ],
)
@pytest.mark.parametrize("name", FOLLOWERS)
def test_scores_of_a_fresh_bandit_stay_in_range_whatever_the_window(name: str, window: int, rounds: int) -> None:
    """Rates of 10 and 30 %, every conversion at once."""
    policy, rng = fresh(name, window), np.random.default_rng(1)
    for _ in range(rounds):
        decision = policy.decide(np.eye(2))
        assert abs(decision.score) < LIMIT.get(name, 3.0)
        if rng.random() < (0.1, 0.3)[decision.index]:
            policy.convert(decision)


@pytest.mark.parametrize(
    ("trial", "rounds"),
    [(5 * 86_400.0, 70), *(pytest.param(t, 200, marks=pytest.mark.soak) for t in (0.0, 3_600.0, 5 * 86_400.0))],
)
@pytest.mark.parametrize("name", FOLLOWERS)
def test_scores_in_a_window_of_a_week_stay_in_range(name: str, trial: float, rounds: int) -> None:
    """A decision a second, every conversion at once, and perhaps one decision long before the others, as a trial."""
    policy, rng = fresh(name, timedelta(days=7)), np.random.default_rng(1)
    policy.decide(np.eye(2), at=0.0)
    for i in range(rounds):
        at = trial + 1.0 + i
        decision = policy.decide(np.eye(2), at=at)
        assert abs(decision.score) < LIMIT.get(name, 3.0)
        if rng.random() < (0.1, 0.3)[decision.index]:
            policy.convert(decision, at=at)


def test_a_window_of_a_hundred_lives_costs_no_more_than_one_that_fits() -> None:
    """Random play loses 100 here."""
    fitting, endless = (regrets(window, horizon=5_000, runs=12).mean() for window in (50, 500_000))
    assert endless < 1.5 * fitting < 60


@pytest.mark.soak
def test_the_window_hardly_matters_once_it_fits() -> None:
    means = [regrets(window, horizon=20_000, runs=100).mean() for window in WINDOWS]
    assert max(means) < 1.15 * min(means)
    assert max(means) < 45  # random play loses 400
