"""The lift's interval holds at every look at once, while the policy's mean moves with what it has seen."""

import numpy as np
import pytest

from latecomer.evaluation.arm_comparison import CONFIDENCE
from latecomer.evaluation.running_mean import find_refuted
from latecomer.service.bandit.lift import report_lift
from latecomer.service.bandit.tally.exact_sums import split_values
from latecomer.service.bandit_report import LiftReport

ROUNDS = 6_000


class Shops:
    """Shops side by side, with a control share.

    The policy's rate jumps up once its own purchases say so, values are 0.5 or 1, and both rates follow a season.
    """

    def __init__(self, runs: int, *, share: float, season: float, seed: int) -> None:
        self.rng, self.runs, self.share, self.season = np.random.default_rng(seed), runs, share, season
        self.counts, self.totals, self.means = (np.zeros((2, runs)) for _ in range(3))

    def play(self, round_: int) -> None:
        is_control = self.rng.random(self.runs) < self.share
        has_learnt = self.totals[0] > 0.03 * np.maximum(self.counts[0], 200.0)
        rate = np.where(~is_control & has_learnt, 0.12, 0.05) * (1.0 + self.season * np.sin(round_ / 700.0))
        values = (self.rng.random(self.runs) < rate) * self.rng.choice([0.5, 1.0], self.runs)
        for arm, chosen in enumerate((~is_control, is_control)):
            self.counts[arm] += chosen
            self.totals[arm] += values * chosen
            self.means[arm] += 0.75 * rate * chosen

    def compare(self, run: int) -> LiftReport:
        arms = [[self.counts[arm, run], 0, *split_values(self.totals[arm, [run]])[0]] for arm in (0, 1)]
        return report_lift(np.array(arms, np.int64))

    def find_misses(self) -> set[int]:
        """Return the runs whose interval misses the difference of the means so far.

        Where both means are inside their own intervals, so is the difference: the others are looked at one by one.
        """
        each, missed = 0.5 + 0.5 * CONFIDENCE, set()
        truth = self.means / np.maximum(self.counts, 1.0)
        outside = [find_refuted(self.counts[arm], self.totals[arm], truth[arm], confidence=each) for arm in (0, 1)]
        for run in np.flatnonzero((outside[0] | outside[1]) & (self.counts.min(axis=0) > 0)).tolist():
            lift = self.compare(run)
            if not lift.low <= truth[0, run] - truth[1, run] <= lift.high:
                missed.add(run)
        return missed


@pytest.mark.parametrize(
    ("share", "season"),
    [(0.3, 0.8), *(pytest.param(*case, marks=pytest.mark.soak) for case in ((0.05, 0.0), (0.05, 0.8), (0.3, 0.0)))],
)
def test_lift_covers_at_all_looks_at_once_over_300_runs(share: float, season: float) -> None:
    shops, missed = Shops(300, share=share, season=season, seed=1), set()
    looks = set(np.unique(np.geomspace(20, ROUNDS, 40).astype(int)).tolist())
    for round_ in range(1, ROUNDS + 1):
        shops.play(round_)
        if round_ in looks:
            missed |= shops.find_misses()
    assert len(missed) <= 300 * (1 - CONFIDENCE)
    if share == 0.3:  # it is of use: a lift of 0.05 is told from 0 in most shops
        assert sum(shops.compare(run).low > 0.0 for run in range(10)) >= 8
