"""The lift's interval holds at every look at once, while the policy's mean moves with what it has seen."""

import numpy as np
import pytest

from latecomer.service.bandit.lift import CONFIDENCE, compare_arms
from latecomer.service.bandit.tally.open_rounds import UNIT

ROUNDS = 6_000


def play(runs: int, looks: int, *, share: float, season: float, seed: int) -> tuple[int, int]:
    """Play shops side by side; return the runs whose interval ever misses, and those in which it ever lies above 0.

    The truth is the difference of the means so far. The policy's rate jumps up once its own purchases say so, values
    are 0.5 or 1, and both rates follow a season.
    """
    rng = np.random.default_rng(seed)
    counts, totals, means = (np.zeros((2, runs)) for _ in range(3))
    missed, told = np.zeros(runs, np.bool_), np.zeros(runs, np.bool_)
    at = set(np.unique(np.geomspace(20, ROUNDS, looks).astype(int)).tolist())
    for round_ in range(1, ROUNDS + 1):
        arm = (rng.random(runs) < share).astype(int)
        has_learnt = totals[0] > 0.03 * np.maximum(counts[0], 200.0)
        rate = np.where(arm == 0, np.where(has_learnt, 0.12, 0.05), 0.05) * (1.0 + season * np.sin(round_ / 700.0))
        values = np.where(rng.random(runs) < rate, rng.choice([0.5, 1.0], runs), 0.0)
        for each in (0, 1):
            counts[each] += arm == each
            totals[each] += values * (arm == each)
            means[each] += 0.75 * rate * (arm == each)
        if round_ in at:
            for run in np.flatnonzero(counts.min(axis=0) > 0).tolist():
                closed = np.array([[counts[each, run], 0, totals[each, run] * UNIT] for each in (0, 1)], np.int64)
                lift = compare_arms(closed)
                truth = means[0, run] / counts[0, run] - means[1, run] / counts[1, run]
                missed[run] |= not lift.low <= truth <= lift.high
                told[run] |= lift.low > 0.0
    return int(missed.sum()), int(told.sum())


def test_lift_covers_at_all_looks_at_once() -> None:
    missed, told = play(24, 6, share=0.3, season=0.4, seed=0)
    assert missed <= 24 * (1 - CONFIDENCE)
    assert told > 12  # it is of use: the lift of 0.05 is told from 0 in most runs


@pytest.mark.soak
@pytest.mark.parametrize("share", [0.05, 0.3])
@pytest.mark.parametrize("season", [0.0, 0.8])
def test_lift_covers_at_all_looks_at_once_over_300_runs(share: float, season: float) -> None:
    missed, _ = play(300, 40, share=share, season=season, seed=1)
    assert missed <= 300 * (1 - CONFIDENCE)
