"""Features outside the range that was learnt: found by batches, until they are back or have stayed for a week."""

import numpy as np
import pytest

from latecomer.core.action_summary import ONE
from latecomer.service.bandit.monitor.feature_ranges import BATCH, FeatureRanges
from latecomer.service.bandit.monitor.grid import DAY, WEEK

DIM = 4


def add(ranges: FeatureRanges, rng: np.random.Generator, begin: int, **change: float) -> None:
    """Add a batch of sets over a day: coordinates in [0, 0.4], the last one 0 in most sets."""
    means = rng.uniform(0.0, 0.4, (BATCH, DIM)) * change.get("scale", 1.0)
    means[:, 1] += change.get("shift", 0.0)
    means[:, 2] *= change.get("third", 1.0)
    means[:, 3] *= rng.random(BATCH) < 0.2
    spread = np.full((BATCH, 1), 0.1 * change.get("scale", 1.0) ** 2)
    shorts = np.rint(np.column_stack([means, spread]) * ONE).astype(np.int16)
    for number, row in enumerate(shorts):
        stamp = begin + number * DAY // BATCH
        ranges.add(np.append(row, np.int16(3)).tobytes(), stamp)


def learn() -> tuple[FeatureRanges, np.random.Generator]:
    ranges, rng = FeatureRanges(DIM), np.random.default_rng(3)
    for day in range(9):
        add(ranges, rng, (1 + day) * DAY)
        assert ranges.finding == ""
    return ranges, rng


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"scale": 0.01}, "the norm of actions is"),
        ({"shift": 0.5}, "coordinates 1 of the actions lie outside"),
        ({"third": 0.0}, "coordinates 2 of the actions have become 0"),
    ],
)
def test_a_change_is_found_and_ends(change: dict[str, float], finding: str) -> None:
    ranges, rng = learn()
    add(ranges, rng, 10 * DAY, **change)
    assert ranges.finding.startswith(finding)
    assert 10 * DAY < ranges.since < 11 * DAY
    add(ranges, rng, 11 * DAY)
    assert ranges.finding == ""


def test_a_change_that_stays_is_learnt_after_a_week() -> None:
    ranges, rng = learn()
    for day in range(8):
        add(ranges, rng, (10 + day) * DAY, scale=0.01)
        assert bool(ranges.finding) == (day < 7)
    add(ranges, rng, 30 * DAY + WEEK, scale=0.01)
    assert ranges.finding == ""


def test_ranges_survive_a_snapshot() -> None:
    ranges, _ = learn()
    ranges.add(np.zeros(DIM + 2, np.int16).tobytes(), 10 * DAY)
    again = FeatureRanges(DIM)
    again.restore(ranges.to_dict())
    for found in (ranges, again):
        add(found, np.random.default_rng(4), 10 * DAY, shift=0.5)
    assert again.to_dict() == ranges.to_dict()
    assert again.finding
