"""Worlds of delays in which the coverage of bands is measured, and the counts of a run, from all rounds at once."""

from dataclasses import dataclass

import numpy as np

from latecomer import delays
from latecomer.delays import DelayCurve, DelayLaw
from latecomer.delays.distribution import Delays, Floats


@dataclass(frozen=True)
class DelayWorld:
    """A decision a round, of which a share converts, with delays of one law."""

    name: str
    law: DelayLaw
    window: int
    rounds: int
    rate: float

    @property
    def truth(self) -> Floats:
        """F_m at every delay from 0 to m."""
        return np.asarray(self.law.cdf(np.arange(self.window + 1))) / float(self.law.cdf(self.window))

    def sample(self, seed: int) -> tuple[Delays, Delays]:
        """Return the decisions and conversions that have been seen when the last round is over."""
        rng = np.random.default_rng(seed)
        start = np.arange(1, self.rounds + 1)
        end = start + np.minimum(self.law.sample(rng, self.rounds), 2 * self.rounds)
        seen = (rng.random(self.rounds) < self.rate) & (end <= self.rounds) & (end - start <= self.window)
        return start[seen], end[seen]

    def count(self, start: Delays, end: Delays) -> DelayCurve:
        """Count as `DelayEstimate` does."""
        limit = np.minimum(self.window, self.rounds - start)
        events = np.bincount(end - start, minlength=self.window + 1)
        younger = np.cumsum(np.bincount(limit + 1, minlength=self.window + 2))[: self.window + 1]
        closed = np.bincount((end - start)[limit == self.window], minlength=self.window + 1)
        ends = np.arange(1.0, self.window + 2.0)
        return DelayCurve(ends, events, np.cumsum(events) - younger, closed=closed)


DELAY_WORLDS = [
    DelayWorld("short", delays.Geometric(20), 100, 10_000, 0.5),
    DelayWorld("like Criteo's, 11.6 days", delays.Criteo(seconds_per_round=10_000), 100, 4_000, 0.5),
    DelayWorld("a sixth open", delays.Geometric(40), 100, 600, 0.9),
    DelayWorld("many", delays.Geometric(100), 500, 10_000, 0.5),
    DelayWorld("like Criteo's, 5.8 days", delays.Criteo(seconds_per_round=1000), 500, 3_000, 0.2),
    DelayWorld("few", delays.Geometric(100), 500, 1_250, 0.5),
    DelayWorld("half open", delays.Geometric(100), 500, 1_000, 0.5),
    DelayWorld("Pareto", delays.Pareto(0.7, 2.0), 200, 5_000, 0.05),
    DelayWorld("window far too long", delays.Geometric(5), 500, 2_000, 0.05),
]


def measure_coverage(world: DelayWorld, *, runs: int, band: str = "mid-p") -> tuple[Floats, Floats, float]:
    """Return, for every age but the last, the share of runs below the band and above it, and the mean of conversions.

    The bands are of 90 %.
    """
    below, above, conversions = np.zeros(world.window), np.zeros(world.window), 0.0
    truth = world.truth[:-1]
    for run in range(runs):
        curve = world.count(*world.sample(run))
        low, high = curve.confidence_band(0.9, band=band)  # type: ignore[arg-type]
        below += truth < low[:-1]
        above += truth > high[:-1]
        conversions += curve.conversions
    return below / runs, above / runs, conversions / runs
