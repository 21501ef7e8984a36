"""Champion and challenger: both learn from every round, the arms are drawn by their share, and compared."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def make(window: Any = 5, **more: Any) -> lc.Contest:
    return lc.Contest(
        lc.OTFLinUCB(2, window), lc.recommended(2, window, draws=8, seed=3), **{"share": 0.4, "seed": 1, **more}
    )


@pytest.mark.parametrize("in_time", [False, True])
def test_both_learn_from_every_round_whoever_decides(in_time: bool) -> None:
    contest = make("5s") if in_time else make()
    actions = np.zeros((2, 0))
    for t in range(60):
        at = {"at": BEGIN + timedelta(seconds=t)} if in_time else {}
        decision = contest.decide(ROWS, **at)
        actions = np.column_stack([actions, decision.action])
        assert contest.convert(decision, 0.5, **at) is lc.Verdict.ACCEPTED
        assert contest.convert(decision, 0.5, **at) is lc.Verdict.DUPLICATE
    V, B = np.eye(2) + actions @ actions.T, 0.5 * actions.sum(axis=1)
    for policy in (contest.champion, contest.challenger):
        np.testing.assert_allclose(policy.V, V, atol=1e-12)
        np.testing.assert_allclose(policy.B, B, atol=1e-12)
    assert contest.promote() is contest.challenger


def test_propensities_blend_those_of_both() -> None:
    contest = make()
    for _ in range(40):
        own, other = (policy.probabilities(ROWS) for policy in (contest.champion, contest.challenger))
        decision = contest.decide(ROWS)
        assert decision.propensity == pytest.approx(0.6 * own[decision.index] + 0.4 * other[decision.index], rel=1e-12)
        contest.convert(decision, float(decision.index == 1))


def test_a_sampler_that_does_not_know_its_propensities_leaves_them_unknown() -> None:
    contest = lc.Contest(lc.LinUCB(2, 5), lc.recommended(2, 5, seed=1), share=0.5, seed=0)
    assert {contest.decide(ROWS).propensity for _ in range(10)} == {None}


def test_arms_are_compared_over_closed_decisions() -> None:
    contest, made = make(share=0.3), []
    for t in range(200):
        decision = contest.decide(ROWS)
        made.append((decision.is_control, 0.0 if t % 3 else 1.0))
        if t % 3 == 0:
            contest.convert(decision)
    closed = made[: 200 - 6]  # a window of 5 is open for six rounds
    found = contest.compare()
    values = {
        is_control: [value for champion, value in closed if champion == is_control] for is_control in (True, False)
    }
    assert (found.decisions, found.other_decisions) == (len(values[False]), len(values[True]))
    assert found.mean == pytest.approx(np.mean(values[False]))
    assert found.other_mean == pytest.approx(np.mean(values[True]))
    assert found.low < 0 < found.high
    assert 0.2 < found.decisions / 194 < 0.4
    assert found.note.startswith("not enough yet: about ")


def test_a_revoked_conversion_is_taken_from_its_arm() -> None:
    contest = make()
    decision = contest.decide(ROWS)
    assert contest.convert(decision) is contest.revoke(decision) is lc.Verdict.ACCEPTED
    for _ in range(8):
        contest.decide(ROWS)
    found = contest.compare()
    assert (found.mean or 0.0, found.other_mean or 0.0) == (0.0, 0.0)
    np.testing.assert_allclose(contest.challenger.B, 0.0, atol=1e-12)


def test_a_frozen_contest_teaches_neither() -> None:
    contest = make()
    contest.freeze()
    contest.convert(contest.decide(ROWS))
    for policy in (contest.champion, contest.challenger):
        np.testing.assert_array_equal(policy.V, np.eye(2))
    contest.unfreeze()
    contest.decide(ROWS)
    assert contest.challenger.V.trace() == pytest.approx(3.0)


def test_wrong_arms_and_shares_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="share must be below 1") as found:
        make(share=1.0)
    assert found.value.field == "share"
    for other in (lc.LinUCB(3, 5), lc.LinUCB(2, 6)):
        with pytest.raises(InputError, match="challenger must have the champion's") as found:
            lc.Contest(lc.LinUCB(2, 5), other)
        assert found.value.field == "challenger"
