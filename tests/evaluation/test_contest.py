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
        at: dict[str, Any] = {"at": BEGIN + timedelta(seconds=t)} if in_time else {}
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


def make_shop(**more: Any) -> lc.Contest:
    """Arms with a reward of amounts that can be returned for twice the window."""
    given = {"reward": {"scale": 4}, "returns": 10, "attribution": "all", **more}
    return lc.Contest(lc.LinUCB(2, 5, **given), lc.recommended(2, 5, draws=8, seed=3, **given), share=0.5, seed=2)


def check_alike(contest: lc.Contest, B: Any) -> None:
    """Both have learnt the same."""
    for policy in (contest.champion, contest.challenger):
        np.testing.assert_allclose(policy.B, B, atol=1e-12)
    np.testing.assert_allclose(contest.champion.V, contest.challenger.V, atol=1e-12)


def test_amounts_ids_and_late_returns_change_both_and_the_comparison() -> None:
    contest = make_shop()
    first, second = (contest.decide(ROWS[:1], subject="ann") for _ in range(2))
    assert contest.convert(first, 1.0, conversion_id="a") is lc.Verdict.ACCEPTED
    assert contest.convert(first, 2.0, conversion_id="b") is lc.Verdict.ACCEPTED
    assert contest.convert(second, 1.0, conversion_id="b") is lc.Verdict.DUPLICATE
    assert contest.convert(subject="ann", value=1.0, conversion_id="c") is lc.Verdict.ACCEPTED  # of both
    check_alike(contest, [(4 + 1) / 4, 0.0])
    assert contest.revoke(conversion_id="c") is lc.Verdict.ACCEPTED
    for _ in range(8):
        contest.decide(ROWS[:1])
    found = contest.compare()
    assert found.decisions + found.other_decisions == 4
    assert count_value(contest) == pytest.approx(0.75)
    assert contest.revoke(first, conversion_id="b") is lc.Verdict.ACCEPTED  # long after the window
    assert count_value(contest) == pytest.approx(0.25)
    assert contest.correct(first, 2.0) is lc.Verdict.ACCEPTED
    assert count_value(contest) == pytest.approx(0.5)
    check_alike(contest, [0.5, 0.0])
    for _ in range(20):
        contest.decide(ROWS[:1])
    assert contest.revoke(first) is lc.Verdict.LATE
    assert count_value(contest) == pytest.approx(0.5)


def count_value(contest: lc.Contest) -> float:
    """The sum of the values of closed decisions."""
    found = contest.compare()
    return (found.mean or 0.0) * found.decisions + (found.other_mean or 0.0) * found.other_decisions


def test_deferred_decisions_are_those_of_the_arm_that_made_them() -> None:
    contest = make_shop(activation_timeout=10)
    deferred = [contest.decide(ROWS, deferred=True) for _ in range(8)]
    assert len({decision.is_control for decision in deferred}) == 2
    assert contest.rounds == 0
    assert contest.convert(deferred[0], 4.0) is lc.Verdict.UNKNOWN
    B = np.zeros(2)
    for decision in deferred[1:]:
        assert contest.activate(decision) is lc.Verdict.ACCEPTED
        assert contest.activate(decision) is lc.Verdict.DUPLICATE
        if decision.is_control:
            assert contest.convert(decision, 4.0) is lc.Verdict.ACCEPTED
            B += decision.action
    check_alike(contest, B)
    for _ in range(6):
        contest.decide(ROWS)
    assert contest.activate(deferred[0]) is lc.Verdict.LATE
    found = contest.compare()
    controls = sum(decision.is_control for decision in deferred[1:])
    assert (found.decisions, found.mean) == (7 - controls, 0.0)
    assert (found.other_decisions, found.other_mean) == (controls, 1.0)


@pytest.mark.parametrize("known", [{}, {"draws": 8}])
def test_rankings_count_for_the_arm_that_made_them(known: Any) -> None:
    contest = lc.Contest(lc.LinUCB(2, 5), lc.recommended(2, 5, seed=3, **known), share=0.5, seed=2)
    credited = 0
    for _ in range(9):
        decision = contest.decide(ROWS, k=2, examination=[1.0, 0.5])
        assert (decision.propensity is None) == (not known)
        assert contest.convert(decision, position=2) is lc.Verdict.ACCEPTED
        credited += 0 if decision.is_control else 1
    for _ in range(6):
        contest.decide(ROWS[:1])
    check_alike(contest, contest.champion.B)
    found = contest.compare()
    assert (found.decisions, found.mean) == (2 * credited, 0.5)
    assert contest.champion.rounds == contest.challenger.rounds == 24


@pytest.mark.parametrize(
    "wrong",
    [
        {"actions": 9 * ROWS},
        {"actions": ROWS, "k": 4},
        {"actions": ROWS, "k": 2, "deferred": True},
        {"actions": ROWS, "places": {"a": 0}, "subject": ""},
        {"actions": ROWS, "at": BEGIN},
    ],
)
def test_a_bad_decision_changes_nothing_not_even_the_next_arm(wrong: dict[str, Any]) -> None:
    contest, twin = make_shop(), make_shop()
    for _ in range(6):
        with pytest.raises(InputError):
            contest.decide(**wrong)
        made, expected = contest.decide(ROWS), twin.decide(ROWS)
        assert (made.index, made.is_control, made.score) == (expected.index, expected.is_control, expected.score)


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("reward", {"reward": {"scale": 2}}),
        ("returns", {"returns": 9}),
        ("attribution", {"attribution": "all"}),
        ("activation_timeout", {"activation_timeout": 3}),
    ],
)
def test_arms_that_take_reports_differently_are_refused(name: str, terms: dict[str, Any]) -> None:
    for own, other in (({}, terms), (terms, {})):
        with pytest.raises(InputError, match=f"challenger must have the champion's {name}"):
            lc.Contest(lc.LinUCB(2, 5, **own), lc.recommended(2, 5, **other))
    policy = lc.LinUCB(2, 5)
    with pytest.raises(InputError, match="got the same object"):
        lc.Contest(policy, policy)
    with pytest.raises(InputError, match="control must be left out of both"):
        lc.Contest(policy, lc.LinUCB(2, 5, control={"share": 0.5, "policy": "uniform"}))


def test_wrong_arms_and_shares_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="share must be below 1") as found:
        make(share=1.0)
    assert found.value.field == "share"
    for other in (lc.LinUCB(3, 5), lc.LinUCB(2, 6)):
        with pytest.raises(InputError, match="challenger must have the champion's") as found:
            lc.Contest(lc.LinUCB(2, 5), other)
        assert found.value.field == "challenger"


def test_a_decision_that_closed_with_a_value_of_0_can_be_corrected() -> None:
    policies = [lc.LinUCB(2, 2, reward={"scale": 200}, returns=50) for _ in range(2)]
    contest = lc.Contest(*policies, share=0.5, seed=1)
    decision = contest.decide(ROWS)
    assert contest.convert(decision, 0.0) is lc.Verdict.ACCEPTED
    for _ in range(5):
        contest.decide(ROWS)
    assert contest.correct(decision, 100.0) is lc.Verdict.ACCEPTED
    found = contest.compare()
    means = [(found.mean or 0.0) * found.decisions, (found.other_mean or 0.0) * found.other_decisions]
    assert sum(means) == pytest.approx(0.5, abs=1e-12)
