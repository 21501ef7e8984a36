"""The interval that is valid at every look: equal to its definition, and it covers all along."""

import math

import numpy as np
import pytest
from adaptive_logs import FLOOR, RATES, TRUTH, WINDOW, play

from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation.betting import GRID, BettingInterval

BOUND = RATES.shape[1] / FLOOR


def define(weights: Floats, outcomes: Floats, value: float, *, bound: float, alpha: float, expected: int) -> bool:
    """True where a value is never refuted, round by round."""
    capital = {(side, bet): 1.0 for side in (1, -1) for bet in (0, 1)}
    products: list[float] = []
    for number, (w, z) in enumerate(zip(weights, outcomes, strict=True), start=1):
        spread = float(np.sum((np.array(products) - np.mean(products)) ** 2)) if products else 0.0
        variance = (0.25 + spread) / number
        odds = 2 * math.log(2 / alpha)
        bets = (
            math.sqrt(odds / (variance * number * math.log(1 + number))),
            math.sqrt(odds / (variance * expected)),
        )
        for (side, bet), before in capital.items():
            limit = 0.95 / (bound * (value if side == 1 else 1 - value))
            capital[side, bet] = before * (1 + side * min(bets[bet], limit) * w * (z - value))
        if any((capital[side, 0] + capital[side, 1]) / 2 >= 2 / alpha for side in (1, -1)):
            return False
        products.append(w * z)
    return True


def test_the_values_kept_are_those_never_refuted() -> None:
    rng = np.random.default_rng(0)
    weights, outcomes = rng.choice([0.0, 1.0, 4.0], 400), (rng.random(400) < 0.3).astype(float)
    interval = BettingInterval(4.0, confidence=0.9, expected_rounds=1000)
    for part in (slice(0, 1), slice(1, 150), slice(150, 400)):
        interval.add(weights[part], outcomes[part])
    assert interval.rounds == 400
    low, high = interval.bounds
    options = {"bound": 4.0, "alpha": 0.1, "expected": 1000}
    for edge, is_kept in ((low, True), (high - 1 / GRID, True), (low - 1 / GRID, False), (high, False)):
        assert define(weights, outcomes, edge + 0.5 / GRID, **options) == is_kept  # type: ignore[arg-type]


@pytest.mark.parametrize("runs", [12, pytest.param(300, marks=pytest.mark.soak)])
def test_it_covers_at_all_looks_at_once_under_adaptive_logging(runs: int) -> None:
    """The running intersection is what is kept: a value refuted at any look stays refuted."""
    logs = play(runs, seed=0)
    rounds = logs.action.shape[1] - WINDOW
    missed = 0
    for run in range(runs):
        interval = BettingInterval(BOUND, confidence=0.9)
        interval.add(logs.weights(run)[:rounds], np.isfinite(logs.delay[run, :rounds]).astype(float))
        low, high = interval.bounds
        missed += not low <= TRUTH <= high
    assert missed / runs <= 0.1


def test_weights_and_outcomes_out_of_range_are_refused() -> None:
    interval = BettingInterval(2.0)
    with pytest.raises(InputError, match="largest_weight must be at least every weight; got 2, and a weight is 3"):
        interval.add(np.array([3.0]), np.array([1.0]))
    with pytest.raises(InputError, match=r"outcomes must be in \[0, 1\]"):
        interval.add(np.array([1.0]), np.array([25.0]))
    assert interval.bounds == (0.0, 1.0)
