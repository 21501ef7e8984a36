"""Feedback in batches."""

import numpy as np

import latecomer as lc
from latecomer import delays
from latecomer.delays import NEVER


def test_every_conversion_is_reported_in_the_last_round_of_its_period() -> None:
    """From the definition, round by round: the first report at or after the arrival."""
    inner, law = delays.Geometric(mean=9), delays.Batched(delays.Geometric(mean=9), period=7)
    for first in (0, 5, 1024):
        found = law.sample_from(np.random.default_rng(3), first, 300)
        raw = inner.sample(np.random.default_rng(3), 300)
        for s, delay, late in zip(range(first, first + 300), raw.tolist(), found.tolist(), strict=True):
            report = next(r for r in range(s + delay, s + delay + 7) if r % 7 == 6)
            assert late == report - s


def test_a_period_of_one_round_changes_nothing_and_never_stays_never() -> None:
    law = delays.Geometric(mean=9)
    once = delays.Batched(law, period=1)
    np.testing.assert_array_equal(once.sample(np.random.default_rng(1), 99), law.sample(np.random.default_rng(1), 99))
    assert (once.cdf(4), once.mean) == (law.cdf(4), law.mean)
    assert set(delays.Batched(delays.Never(), 5).sample(np.random.default_rng(1), 9).tolist()) == {NEVER}


def test_the_arena_has_feedback_once_a_day() -> None:
    from latecomer.experiments.arena.worlds import load_worlds

    row = load_worlds()["feedback once a day"]
    assert isinstance(row.world.delays, lc.delays.Batched)
    arrivals = np.arange(1024) + delays.draw(row.world.delays, np.random.default_rng(0), 1024)
    assert set((arrivals % row.world.delays.period).tolist()) == {row.world.delays.period - 1}
