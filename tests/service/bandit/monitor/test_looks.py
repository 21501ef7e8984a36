"""Looks at the delays: a drift, a difference between actions and a short window are found, and nothing else is."""

import math

from quiet_shop import DAY, HOUR, QuietShop

from latecomer.service.bandit.monitor.delay_sample import MOST


def test_a_drift_is_found_and_forgotten_once_all_decisions_have_the_new_law() -> None:
    shop = QuietShop(1, daily=1500, delay=4 * HOUR, window=DAY)
    shop.play(5 * DAY)
    assert shop.monitor.findings == {}
    shop.delay = 12.0 * HOUR
    shop.play(3 * DAY)
    found = shop.monitor.findings["delays_drift"]
    assert (found.named, found.p_value < 0.001) == ("later", True)
    assert 5 * DAY < found.since - (shop.now - 8 * DAY) <= 8 * DAY
    shop.play(9 * DAY)
    assert "delays_drift" not in shop.monitor.findings


def test_delays_that_differ_by_action_are_found() -> None:
    shop = QuietShop(2, daily=1500, delay=[2 * HOUR, 4 * HOUR, 40 * HOUR], window=DAY)
    shop.play(3 * DAY)
    assert shop.monitor.findings["delays_differ_by_action"].named == "c"


def test_a_window_that_ends_in_the_middle_of_the_delays_is_found() -> None:
    shop = QuietShop(4, daily=4000, delay=30 * HOUR, window=DAY)
    shop.play(4 * DAY)
    found = shop.monitor.findings["window_too_short"]
    expected = (math.exp(-0.72) - math.exp(-0.8)) / (1.0 - math.exp(-0.8))  # of exponential delays, in the last tenth
    assert found.named == "end"
    assert abs(found.share - expected) < 0.02


def test_the_sample_is_bounded_and_thinned_by_decisions() -> None:
    shop = QuietShop(3, daily=40_000, window=DAY)
    shop.play(DAY)
    saved = shop.monitor.sample.to_dict()
    assert MOST // 2 - 200 < len(saved["rows"]) // 24 <= MOST
    assert saved["level"] == 1
