"""Corrections: a round whose credit is replaced counts as if it had been credited with the other value at first.

Actions and values are multiples of 1/16, so that sums of their products are exact: states must agree to the last bit.
"""

from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make

import latecomer as lc

ACTIONS = np.random.default_rng(5).integers(-9, 10, (40, 2)) / 16.0
WINDOW, RETURNS = 6, 60
VALUES = {3: (1.0, 0.25), 5: (0.5, 0.75), 9: (0.25, 0.0), 14: (0.75, 1.0)}
"""By round: the value at first, and the one that it is corrected to."""
PATH = {
    "LogisticLinTS": ("beta", "precision", "linear", "gram"),
    "OTFLinUCB-variance": ("closed", "all", "observed", "mixture", "certificate"),
    "guarded": ("closed", "all", "observed", "mixture", "certificate"),
}
"""Fields, by how their names begin, with weights that earlier values have moved: of a quadratic at the β of its round's
closing, and of a confidence set at the bounds of its round's decision."""


def play(name: str, *, wait: int | None, **more: Any) -> Any:
    """Play one action after the other; correct the values after so many rounds, or give the final ones at once."""
    seeded = {} if "UCB" in name or name in ("Greedy", "Uniform") else {"seed": 1}
    policy = make(name, 2, WINDOW, returns=RETURNS, **{**seeded, **more})
    for round_, action in enumerate(ACTIONS, start=1):
        policy.decide(action[None])
        if wait is not None and round_ - wait - 2 in VALUES:
            assert policy.correct(round_ - wait - 2, VALUES[round_ - wait - 2][1]) is lc.Verdict.ACCEPTED
        if round_ - 2 in VALUES:
            first, final = VALUES[round_ - 2]
            assert policy.convert(round_ - 2, final if wait is None else first) is lc.Verdict.ACCEPTED
    return policy


@pytest.mark.parametrize("wait", [2, 20], ids=["open", "long closed"])
@pytest.mark.parametrize("name", [*EVERY_POLICY, "guarded"])
def test_a_correction_equals_the_value_given_at_first(name: str, wait: int) -> None:
    kind, more = ("MaturedLinTS", {"guard": 4.0}) if name == "guarded" else (name, {})
    corrected, direct = (play(kind, wait=each, **more) for each in (wait, None))
    for field in corrected.state.saved_fields():
        if not field.startswith(PATH.get(name, ("-",))):
            ours, theirs = corrected.state.record[field], direct.state.record[field]
            np.testing.assert_array_equal(ours, theirs, err_msg=field)


def test_a_conversion_id_counts_once_whichever_decision_it_is_reported_for() -> None:
    policy = lc.LinUCB(2, 4, reward={"scale": 2}, returns=6, attribution="all")
    one, other, third = (policy.decide(ACTIONS[:1], subject="ann" if shown else None).round for shown in (1, 0, 1))
    assert policy.convert(one, 1, conversion_id="x") is lc.Verdict.ACCEPTED
    assert policy.convert(other, 1, conversion_id="x") is lc.Verdict.DUPLICATE
    assert policy.convert(99, 1, conversion_id="x") is lc.Verdict.UNKNOWN
    assert policy.convert(subject="ann", value=1, conversion_id="y") is lc.Verdict.ACCEPTED
    for round_ in (one, other, third):
        assert policy.convert(round_, 1, conversion_id="y") is lc.Verdict.DUPLICATE
    np.testing.assert_array_equal(policy.B, 1.5 * ACTIONS[0])  # x of the first, y of the first and the third
    assert policy.revoke(conversion_id="x") is lc.Verdict.ACCEPTED
    assert policy.convert(other, 1, conversion_id="x") is lc.Verdict.DUPLICATE
    for _ in range(8):  # the first round is ten rounds old: its conversions can no longer be revoked after one more
        last = policy.decide(ACTIONS[:1]).round
    assert policy.convert(last, 1, conversion_id="x") is lc.Verdict.DUPLICATE
    last = policy.decide(ACTIONS[:1]).round
    assert policy.convert(last, 1, conversion_id="x") is lc.Verdict.ACCEPTED
    assert policy.convert(last, 1, conversion_id="y") is lc.Verdict.DUPLICATE, "the third round still has it"


@pytest.mark.parametrize("first", [1.0, 0.25])
def test_a_confidence_set_is_corrected_to_that_of_the_other_value(first: float) -> None:
    corrected, direct = (lc.OTFLinUCB(2, 3, width="variance", returns=9) for _ in range(2))
    for policy, value in ((corrected, first), (direct, 0.75)):
        policy.decide(ACTIONS[:1])
        policy.convert(1, value)
        for action in ACTIONS[1:5]:  # at the fifth decision the first round closes; the ring holds it no more
            policy.decide(action[None])
    assert corrected.correct(1, 0.75) is lc.Verdict.ACCEPTED
    for field in ("closed_b", "observed_W", "mixture_inv", "mixture_log_det"):
        ours, theirs = corrected.state.array(field), direct.state.array(field)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=field)


def make_policy(aggregate: Any = "sum", **more: Any) -> Any:
    return lc.OTFLinUCB(1, 5, reward={"scale": 200, "aggregate": aggregate}, **{"returns": 20, **more})


def decide(policy: Any, count: int = 1) -> Any:
    return [policy.decide([[1.0]]) for _ in range(count)][-1]


@pytest.mark.parametrize(("aggregate", "expected"), [("first", 0.25), ("sum", 0.6), ("max", 0.35)])
def test_conversions_of_one_decision_are_aggregated(aggregate: Any, expected: float) -> None:
    policy = make_policy(aggregate)
    decision = decide(policy)
    verdicts = [policy.convert(decision, amount, conversion_id=f"order-{amount}") for amount in (50, 70, 50)]
    second = "duplicate" if aggregate == "first" else "accepted"
    assert verdicts == ["accepted", second, "duplicate"]
    assert policy.B[0] == pytest.approx(expected, rel=1e-15)


def test_a_sum_is_capped_at_the_scale_and_returns_count_from_below_it() -> None:
    policy = make_policy()
    decision = decide(policy)
    for amount in (150, 100):
        policy.convert(decision, amount, conversion_id=str(amount))
    assert policy.B[0] == 1.0
    assert policy.revoke(conversion_id="100") == "accepted"
    assert policy.B[0] == 0.75
    assert policy.revoke(decision, conversion_id="100") == "duplicate"
    assert policy.convert(decision, 100, conversion_id="100") == "duplicate"  # taken back for good
    assert policy.convert(decision, 50) == "accepted"  # one without an id
    assert policy.convert(decision, 50) == "duplicate"
    assert policy.B[0] == 1.0


def test_all_conversions_of_a_decision_are_revoked_together_and_others_may_follow() -> None:
    policy = make_policy()
    decision = decide(policy)
    for amount in (50, 100):
        policy.convert(decision, amount, conversion_id=str(amount))
    assert policy.revoke(decision) == "accepted"
    assert (policy.B[0], policy.revoke(decision), policy.pending) == (0.0, "duplicate", 0)
    assert policy.convert(decision, 20, conversion_id="later") == "accepted"
    assert (policy.B[0], policy.pending) == (0.1, 0)


def test_returns_are_taken_until_their_time_has_passed_and_no_new_conversion_is() -> None:
    policy = make_policy()
    decision = decide(policy)
    for name in ("a", "b"):
        policy.convert(decision, 50, conversion_id=name)
    decide(policy, 25)  # its age is 25: the window of 5 and 20 more
    assert policy.convert(decision, 50, conversion_id="c") == "late"
    assert policy.revoke(decision, conversion_id="c") == "unknown"
    assert policy.revoke(conversion_id="a") == "accepted"
    assert policy.B[0] == 0.25
    decide(policy)
    assert (policy.revoke(decision, conversion_id="b"), policy.correct(decision, 10)) == ("late", "late")
    assert policy.revoke(conversion_id="b") == "unknown"  # an id is forgotten when nothing can be done with it
    assert policy.B[0] == 0.25


def test_a_correction_replaces_all_and_later_conversions_add_to_it() -> None:
    policy = make_policy()
    decision = decide(policy)
    policy.convert(decision, 50, conversion_id="a")
    assert [policy.correct(decision, amount) for amount in (120, 120, 100)] == ["accepted", "duplicate", "accepted"]
    assert (policy.B[0], policy.revoke(decision, conversion_id="a")) == (0.5, "duplicate")
    assert policy.convert(decision, 20, conversion_id="b") == "accepted"
    assert policy.B[0] == 0.6
    other = decide(policy)
    assert (policy.correct(other, 1), policy.correct(99, 1)) == ("unknown", "unknown")


def test_without_a_reward_a_held_credit_can_be_corrected() -> None:
    policy = lc.OTFLinUCB(1, 5)
    decision = decide(policy)
    assert policy.correct(decision, 0.5) == "unknown"
    policy.convert(decision)
    assert [policy.correct(decision, 0.5) for _ in range(2)] == ["accepted", "duplicate"]
    assert policy.B[0] == 0.5
    decide(policy, 6)
    assert policy.correct(decision, 0.25) == "late"


def test_an_id_counts_once_for_a_subject_however_often_it_is_sent() -> None:
    policy = make_policy()
    policy.decide([[1.0]], subject="anna")
    policy.convert(value=50, subject="anna", conversion_id="order")
    policy.decide([[1.0]], subject="anna")
    assert policy.convert(value=50, subject="anna", conversion_id="order") == "duplicate"
    assert policy.convert(value=30, subject="anna", conversion_id="other") == "accepted"
    assert policy.B[0] == 0.4


def test_baskets_are_saved_and_go_on_to_the_last_bit(tmp_path: Any) -> None:
    policy = make_policy(width="variance")
    for round_ in range(1, 9):
        decide(policy)
        policy.convert(round_, 40.0 + round_, conversion_id=f"{round_}")
    policy.revoke(conversion_id="2")
    policy.save(tmp_path / "policy")
    again = lc.load(tmp_path / "policy")
    for each in (policy, again):
        decide(each)
        each.revoke(conversion_id="1")
        each.convert(8, 10, conversion_id="more")
    assert again.to_bytes() == policy.to_bytes()
    assert (len(policy.fresh().baskets), again.revoke(conversion_id="2")) == (0, "duplicate")


def test_baskets_beyond_their_time_are_dropped() -> None:
    policy = make_policy()
    for round_ in range(1, 1101):
        decide(policy)
        policy.convert(round_, 1, conversion_id=f"{round_}")
    assert len(policy.baskets) <= 1025
    assert policy.revoke(conversion_id="1076") == "accepted"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reward": {"scale": 0}}, "reward: scale must be"),
        ({"reward": {"aggregate": "sum"}}, "reward must be"),
        ({"reward": {"scale": 1, "aggregate": "mean"}}, "reward: aggregate must be one of 'first', 'sum', 'max'"),
        ({"returns": "30d"}, "returns must be a number of rounds"),
    ],
)
def test_a_wrong_reward_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(lc.errors.InputError, match=message):
        lc.OTFLinUCB(1, 5, **arguments)


def test_amounts_above_a_thousand_million_are_taken() -> None:
    policy = lc.OTFLinUCB(1, 5, reward={"scale": 5e9})
    decision = policy.decide([[1.0]])
    assert policy.convert(decision, 2e9, conversion_id="1") == "accepted"
    assert policy.convert(decision, 1e15, conversion_id="2") == "accepted"
    assert policy.revoke(decision, conversion_id="2") == "accepted"
    np.testing.assert_array_equal(policy.B, [0.4])
    with pytest.raises(
        lc.errors.InputError, match=r"value must be at least 0 and at most 1e15; got 2000000000000000.0"
    ):
        policy.convert(decision, 2e15, conversion_id="3")


def test_a_wrong_amount_or_id_is_refused_and_changes_nothing() -> None:
    policy = make_policy()
    decision = decide(policy)
    before = policy.to_bytes()
    for value in (None, -1, float("nan"), float("inf"), 1e16):
        with pytest.raises(lc.errors.InputError, match="value must"):
            policy.convert(decision, value)
    for name in ("", "x" * 201, 7):
        with pytest.raises(lc.errors.InputError, match="conversion_id must"):
            policy.convert(decision, 1, conversion_id=name)
    with pytest.raises(lc.errors.InputError, match="got neither"):
        policy.revoke()
    assert policy.to_bytes() == before


def test_an_id_of_another_decision_is_late_where_the_conversion_is() -> None:
    """It occurred outside of the window, and is reported inside of the grace."""
    policy = lc.OTFLinUCB(2, "10s", grace="8s")
    first, second = (policy.decide(np.eye(2), at=at) for at in (0.0, 0.0))
    assert policy.convert(second, at=0.0, conversion_id="p") is lc.Verdict.ACCEPTED
    assert policy.convert(first, at=11.0) is lc.Verdict.LATE
    assert policy.convert(first, at=11.0, conversion_id="p") is lc.Verdict.LATE
    assert policy.convert(first, at=9.0, conversion_id="p") is lc.Verdict.DUPLICATE
