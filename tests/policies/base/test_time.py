"""Times of decisions and conversions: from a clock, of any type, and running backwards."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

import latecomer as lc
from latecomer.timestamps import parse_timestamp

HOUR = timedelta(hours=1)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ACTIONS = np.eye(2)


def test_the_clock_is_read_when_no_time_is_given() -> None:
    now = START
    policy = lc.OTFLinUCB(dim=2, window=HOUR, clock=lambda: now)
    decision = policy.decide(ACTIONS)
    now = START + HOUR
    assert policy.convert(decision) is lc.Verdict.ACCEPTED
    other = policy.decide(ACTIONS)
    now = START + 2 * HOUR + timedelta(microseconds=1)
    assert policy.convert(other) is lc.Verdict.LATE


def test_without_a_clock_the_time_is_the_machines() -> None:
    policy = lc.OTFLinUCB(dim=2, window=HOUR)
    assert policy.convert(policy.decide(ACTIONS)) is lc.Verdict.ACCEPTED


def test_a_time_of_any_type_is_parsed() -> None:
    seconds = START.timestamp()
    assert (
        parse_timestamp(START)
        == parse_timestamp(START.replace(tzinfo=None))  # no zone: UTC
        == parse_timestamp(START.astimezone(timezone(timedelta(hours=5))))
        == parse_timestamp(seconds)
        == parse_timestamp(int(seconds))
        == parse_timestamp(np.float64(seconds))
        == int(seconds) * 10**6
    )


@pytest.mark.parametrize("at", ["noon", None, True, float("nan"), float("inf"), 1e300, [1.0]])
def test_what_is_no_time_is_refused(at: object) -> None:
    with pytest.raises(lc.errors.InputError, match=r"at must be a .*seconds since 1970; got"):
        parse_timestamp(at)  # type: ignore[arg-type]


def test_a_step_back_within_the_window_counts_as_now() -> None:
    policy = lc.OTFLinUCB(dim=2, window=HOUR)
    policy.decide(ACTIONS, at=START)
    earlier = policy.decide(ACTIONS, at=START - HOUR)
    # Had its own time been taken, its window would end at START.
    assert policy.convert(earlier, at=START + HOUR) is lc.Verdict.ACCEPTED
    assert policy.convert(1, at=START - timedelta(minutes=5)) is lc.Verdict.ACCEPTED


def test_a_step_back_of_more_than_the_window_is_refused() -> None:
    policy = lc.OTFLinTS(dim=2, window=HOUR, seed=0)
    policy.decide(ACTIONS, at=START)
    before = policy.rng.state()
    with pytest.raises(lc.errors.ClockError, match=r"window, 1 h; got a time just over 1 h before the latest decision"):
        policy.decide(ACTIONS, at=START - HOUR - timedelta(microseconds=1))
    with pytest.raises(lc.errors.ClockError, match="check the clock"):
        policy.decide_many([ACTIONS, ACTIONS], at=[START, START - 2 * HOUR])
    with pytest.raises(lc.errors.ClockError, match="check the clock"):
        policy.convert(1, at=START - 2 * HOUR)
    assert (policy.rounds, policy.pending) == (1, 1)
    assert policy.rng.state() == before


def test_a_conversion_may_lie_back_by_the_window_and_the_grace() -> None:
    policy = lc.OTFLinUCB(dim=2, window=HOUR, grace="2h")
    first, second = policy.decide(ACTIONS, at=START), policy.decide(ACTIONS, at=START)
    assert policy.convert(first, at=START - 3 * HOUR) is lc.Verdict.ACCEPTED
    cause = r"further back than the window and the grace, 3 h; got a time just over 3 h before"
    with pytest.raises(lc.errors.ClockError, match=cause):
        policy.convert(second, at=START - 3 * HOUR - timedelta(microseconds=1))
    with pytest.raises(lc.errors.ClockError, match=r"further back than the window, 1 h; got"):
        policy.decide(ACTIONS, at=START - 2 * HOUR)


def test_a_refused_time_names_the_decision_that_it_lies_behind() -> None:
    """A missing time means now: the rows after it are refused, and are not to blame."""
    policy = lc.OTFLinUCB(dim=2, window=HOUR, clock=lambda: START + 48 * HOUR)
    policy.decide(ACTIONS, at=START)
    policy.decide(ACTIONS, at=None)
    cause = r"round 2 at 2026-03-03T12:00:00\+00:00: .*a missing time \(None is now\) or a mistyped one went before it"
    with pytest.raises(lc.errors.ClockError, match=cause):
        policy.decide(ACTIONS, at=START + HOUR)
    with pytest.raises(lc.errors.ClockError, match=cause):
        policy.convert(2, at=START + HOUR)
    with pytest.raises(lc.errors.ClockError, match=r"^for set 1 of the batch: .* round 3 at 2026-03-03T13:00:00"):
        policy.decide_many([ACTIONS] * 2, at=[START + 49 * HOUR, START])


def test_an_old_message_is_judged_by_its_decision_alone() -> None:
    """A queue that delivers a day-old conversion again must not stop on it."""
    policy = lc.OTFLinUCB(dim=2, window=HOUR)
    policy.decide(ACTIONS, at=START)
    policy.decide(ACTIONS, at=START + 24 * HOUR)
    policy.convert(2, at=START + 24 * HOUR)
    assert policy.convert(1, at=START) is lc.Verdict.LATE
    assert policy.convert(2, at=START) is lc.Verdict.DUPLICATE
    assert policy.convert(3, at=START) is lc.Verdict.UNKNOWN


def test_decide_many_takes_one_time_for_all_or_one_for_each() -> None:
    policy = lc.OTFLinUCB(dim=2, window=HOUR)
    policy.decide_many([ACTIONS] * 3, at=START)
    policy.decide_many([ACTIONS] * 2, at=[START + HOUR / 2, START + 2 * HOUR])
    assert policy.pending == 1
    with pytest.raises(lc.errors.InputError, match=r"one per action set, 2; got \["):
        policy.decide_many([ACTIONS] * 2, at=[START] * 3)


def test_time_is_not_for_windows_in_rounds() -> None:
    policy = lc.OTFLinUCB(dim=2, window=5)
    for call in (
        lambda: policy.decide(ACTIONS, at=START),
        lambda: policy.decide_many([ACTIONS], at=START),
        lambda: policy.convert(1, at=START),
        lambda: policy.revoke(1, at=START),
    ):
        with pytest.raises(lc.errors.InputError, match=r"at is for windows in time, and this window is 5 rounds"):
            call()
    assert policy.rounds == 0


def test_width_is_as_of_now() -> None:
    policy = lc.OTFLinUCB(dim=2, window=HOUR)
    policy.decide(ACTIONS, at=START)
    assert policy.pending_width == pytest.approx(np.sqrt(0.5))
    policy.decide(ACTIONS, at=START + 2 * HOUR)
    assert policy.pending_width == pytest.approx(np.sqrt(0.5))  # the first has closed
