"""The law of a log's delays: corrected for what is still to come, in rounds of a rate or a length."""

from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from latecomer import delays
from latecomer.delays import DelayLaw, read_conversions
from latecomer.errors import InputError

DAY = 86_400.0


def make_log(law: DelayLaw, *, decisions: int, days: float, rate: float) -> pl.DataFrame:
    """A log as it stands when watching ends; the law is in seconds."""
    rng = np.random.default_rng(0)
    decided = rng.uniform(0.0, days * DAY, decisions)
    converted = decided + law.sample(rng, decisions)
    seen = (rng.random(decisions) < rate) & (converted <= days * DAY)
    return pl.DataFrame(
        {"decided_at": decided, "converted_at": pl.Series(np.where(seen, converted, np.nan)).fill_nan(None)}
    )


SMALL = make_log(delays.LogNormal(3600, 1.5), decisions=4000, days=3, rate=0.3)


def test_the_law_of_a_log_is_that_of_its_delays_and_not_of_what_came_in_time() -> None:
    """Half of the delays are longer than the log's last days: what was seen is far too short, the law is not."""
    truth = delays.LogNormal(2 * DAY, 1.0)
    frame = make_log(truth, decisions=60_000, days=14, rate=0.4)
    log = read_conversions(frame, longest="7d")
    law = log.law(unit="1h")
    at = np.array([6, 24, 72, 120])
    expected = truth.cdf(at * 3600.0) / truth.cdf(7 * DAY)
    seen = (frame["converted_at"] - frame["decided_at"]).drop_nulls().to_numpy()
    naive = np.array([(seen <= hours * 3600.0).mean() for hours in at]) / (seen <= 7 * DAY).mean()
    np.testing.assert_allclose(law.cdf(at - 1), expected, atol=0.015)
    assert np.abs(naive - expected).max() > 0.05
    assert law.cdf(7 * 24) == 1.0


def test_rounds_of_a_law_are_those_of_a_rate_a_unit_or_the_log() -> None:
    log = read_conversions(SMALL)
    days = (log.last - log.first) / DAY
    assert log.decisions_a_day == pytest.approx(4000 / days)
    given, own = log.law(per_day=4000 / days), log.law()
    assert given.mean == pytest.approx(own.mean)
    hours = log.law(unit="1h")
    np.testing.assert_allclose(hours.cdf([3, 10]), log.law(per_day=24).cdf([3, 10]))
    np.testing.assert_allclose(hours.cdf([3, 10]), log.law(unit=timedelta(hours=1)).cdf([3, 10]))
    np.testing.assert_allclose(hours.cdf([3, 10]), log.law(unit=3600).cdf([3, 10]))
    halves = log.law(per_day=48)
    np.testing.assert_allclose(halves.cdf([7, 21]), hours.cdf([3, 10]), rtol=1e-12)  # up to 4 hours, up to 11


def test_a_log_of_conversions_alone_does_not_tell_its_rate() -> None:
    log = read_conversions(SMALL.drop_nulls())
    with pytest.raises(InputError, match=r"per_day must be given, in decisions a day, where every decision"):
        log.law()
    assert log.law(per_day=1000).mean > 0
    with pytest.raises(InputError, match=r"per_day and unit must not both be given"):
        log.law(per_day=1000, unit="1h")
    with pytest.raises(InputError, match=r"unit, in seconds, must be"):
        log.law(unit=-1.0)
