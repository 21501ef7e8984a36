"""The obvious loop over a data frame: rows without a conversion are refused, and times are read as they stand."""

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

import latecomer as lc
from latecomer.errors import InputError

ACTIONS = np.eye(2)
START = pd.Timestamp("2026-01-05T12:00:00Z")


def frame(rows: int, bought: int) -> pd.DataFrame:
    """Decisions a second apart, of which some are bought an hour later."""
    decided = pd.Series([START + pd.Timedelta(seconds=i) for i in range(rows)])
    return pd.DataFrame({"decided": decided, "bought": (decided + pd.Timedelta(hours=1)).where(decided.index < bought)})


def convert_each(
    policy: lc.OTFLinUCB, decisions: list[lc.Decision], log: pd.DataFrame, verdicts: list[lc.Verdict]
) -> None:
    """The loop that everybody writes."""
    for decision, bought in zip(decisions, log.bought, strict=True):
        verdicts.append(policy.convert(decision, at=bought))


@pytest.mark.parametrize("zone", ["UTC", None])
def test_the_obvious_loop_does_not_credit_rows_without_a_conversion(zone: str | None) -> None:
    log = frame(1000, 23)
    if zone is None:
        log = log.assign(decided=log.decided.dt.tz_localize(None), bought=log.bought.dt.tz_localize(None))
    policy = lc.OTFLinUCB(2, timedelta(days=7))
    decisions = [policy.decide(ACTIONS, at=at) for at in log.decided]
    verdicts: list[lc.Verdict] = []
    with pytest.raises(InputError, match=r"^at must be a .*; got NaT: .*leave out rows without a conversion"):
        convert_each(policy, decisions, log, verdicts)
    assert verdicts == [lc.Verdict.ACCEPTED] * 23
    assert policy.pending == 1000 - 23


@pytest.mark.parametrize(
    "nothing", [pd.NaT, np.datetime64("NaT"), float("nan"), pd.NA, 1_767_614_400_000, "NaT"], ids=repr
)
def test_a_missing_time_is_refused_and_changes_nothing(nothing: Any) -> None:
    policy = lc.OTFLinTS(2, "7d", seed=0)
    decision = policy.decide(ACTIONS, at=START)
    policy.convert(policy.decide(ACTIONS, at=START), at=START)
    state, generator = policy.state.record.copy(), policy.rng.state()
    for call in (
        lambda: policy.decide(ACTIONS, at=nothing),
        lambda: policy.decide_many([ACTIONS] * 2, at=nothing),
        lambda: policy.decide_many([ACTIONS] * 2, at=[START, nothing]),
        lambda: policy.convert(decision, at=nothing),
        lambda: policy.revoke(2, at=nothing),
    ):
        with pytest.raises(InputError, match="at must be a "):
            call()
    assert policy.state.record.tobytes() == state.tobytes()
    assert policy.rng.state() == generator


def test_a_clock_that_tells_nonsense_is_refused() -> None:
    policy = lc.OTFLinUCB(2, "7d", clock=lambda: pd.NaT)
    with pytest.raises(InputError, match=r"^what clock tells must be a datetime, .*; got NaT"):
        policy.decide(ACTIONS)


def test_columns_are_times_for_a_batch() -> None:
    log = frame(5, 5)
    for column in (log.decided, log.decided.to_numpy(), log.decided.dt.tz_localize(None).to_numpy(), list(log.decided)):
        policy = lc.OTFLinUCB(2, "2s")
        policy.decide_many([ACTIONS] * 5, at=column)
        assert (policy.rounds, policy.pending) == (5, 3)
    policy = lc.OTFLinUCB(2, "2s")
    with pytest.raises(InputError, match=r"^for set 3 of the batch: at must be a datetime, .*; got NaT"):
        policy.decide_many([ACTIONS] * 5, at=log.decided.where(log.index < 3))
    with pytest.raises(InputError, match=r"at must be one time, or one per action set, 5"):
        policy.decide_many([ACTIONS] * 5, at=log.decided[:3])
    assert policy.rounds == 0


def test_the_future_is_allowed_in_the_library() -> None:
    policy = lc.OTFLinUCB(2, "7d")
    assert policy.convert(policy.decide(ACTIONS, at="2999-01-01T00:00:00Z"), at="2999-01-02") is lc.Verdict.ACCEPTED


def test_a_column_of_rounds_with_a_missing_one_is_taken() -> None:
    policy = lc.OTFLinUCB(2, 10)
    policy.decide_many([ACTIONS] * 3)
    rounds = pd.Series([1, None, 3])
    assert rounds.dtype == float
    for round_ in rounds.dropna():
        assert policy.convert(round_) is lc.Verdict.ACCEPTED
    assert policy.revoke(np.float32(3)) is lc.Verdict.ACCEPTED  # type: ignore[arg-type]
    assert policy.convert(1e300) is lc.Verdict.UNKNOWN
    missing: Any
    for missing in (rounds[1], float("nan"), pd.NA, None):
        with pytest.raises(InputError, match=r"; got .*: leave out rows without a decision$"):
            policy.convert(missing)
