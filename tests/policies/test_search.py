"""Decisions by a search: the same as among the actions themselves, with exact propensities, whoever searches."""

from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.policies.base.bulk import summarise as summarise_set
from latecomer.policies.base.search import ExactSearch, rank_by_score, summarise

SAMPLERS = [lc.OTFLinTS, lc.LinTS, lc.MaturedLinTS, lc.ImputedLinTS, lc.LogisticLinTS, lc.recommended]


def make_sets(count: int, *, rounds: int, dim: int = 4) -> Any:
    sets = np.random.default_rng(5).standard_normal((rounds, count, dim))
    return sets / np.linalg.norm(sets, axis=2, keepdims=True).max()


@pytest.mark.parametrize("make", SAMPLERS)
def test_search_decides_as_the_policy_does_among_the_actions(make: Any) -> None:
    sent, searched, asked = (make(4, 30, seed=3) for _ in range(3))
    for place, rows in enumerate(make_sets(7, rounds=40)):
        expected = sent.decide(rows)
        found = searched.decide_by_search(ExactSearch(rows, summarise_set(rows)))
        assert (found.index, found.round, found.propensity) == (expected.index, expected.round, None)
        assert found.score == pytest.approx(expected.score, abs=1e-9)
        if place % 3 == 0:
            assert sent.convert(expected) is searched.convert(found)
        if place < 5 and make in (lc.OTFLinTS, lc.LinTS):  # others take the whole set into account
            answer = asked.decide(oracle=lambda theta, rows=rows: rows[np.argmax(rows @ theta)])
            assert answer.action.tobytes() == make_twin(asked, make, rows, place).tobytes()
    assert sent.V.tobytes() == searched.V.tobytes()
    assert sent.B.tobytes() == searched.B.tobytes()


def make_twin(_: Any, make: Any, rows: Any, place: int) -> Any:
    """The action that a policy with the same seed chooses when it is given the rows of all rounds so far."""
    twin = make(4, 30, seed=3)
    return [twin.decide(rows_) for rows_ in make_sets(7, rounds=40)[: place + 1]][-1].action


@pytest.mark.parametrize(("rounds", "off"), [(400, 0.077), pytest.param(1500, 0.04, marks=pytest.mark.soak)])
def test_propensities_of_a_search_are_its_frequencies(rounds: int, off: float) -> None:
    """The share of the control is within 5.16 standard errors: √(0.1·0.9/rounds) is 0.0077 for 1,500, 0.015 for 400."""
    rows, excluded = make_sets(5, rounds=1)[0], np.array([2])
    policy = lc.OTFLinTS(4, 30, seed=1, floor=0.2, draws=16, control={"share": 0.1, "policy": 4})
    found = [policy.decide_by_search(ExactSearch(rows, summarise(rows), excluded)) for _ in range(rounds)]
    assert {decision.index for decision in found} == {0, 1, 3, 4}
    # an importance weight of each action's own choices has the mean 1, whatever the policy has learnt
    for index in (0, 1, 3, 4):
        weights = [(decision.index == index) / (decision.propensity or 0.0) for decision in found]
        assert np.mean(weights) == pytest.approx(1.0, abs=5 * np.std(weights) / np.sqrt(len(weights)))
    shares = [decision.is_control for decision in found]
    assert np.mean(shares) == pytest.approx(0.1, abs=off)
    assert all(decision.index == 4 for decision in found if decision.is_control)


def test_single_precision_does_not_decide() -> None:
    """Rows that are equal in single precision scores are told apart by doubles; equal rows go to the first."""
    rows = np.full((1000, 8), 0.2, np.float32)
    rows[617, 3] = np.nextafter(np.float32(0.2), np.float32(1.0))
    theta = np.full((1, 8), 0.5)
    search = ExactSearch(rows, summarise(rows))
    assert search.find_best(theta, 1).tolist() == [[617]]
    assert search.find_best(theta, 3).tolist() == [[617, 0, 1]]
    assert search.find_best(-theta, 2).tolist() == [[0, 1]]
    assert rank_by_score(np.array([4, 7, 9]), np.array([1.0, 2.0, 2.0]), 2) == [7, 9]


def test_summary_of_a_search_is_that_of_the_set() -> None:
    for rows in make_sets(6, rounds=5):
        difference = summarise(rows).astype(int) - summarise_set(rows).astype(int)
        assert np.abs(difference).max() <= 1  # sums in another order may round otherwise


@pytest.mark.parametrize(
    ("policy", "arguments", "field"),
    [
        (lc.OTFLinUCB(2, 9), {"oracle": lambda theta: theta}, "policy"),
        (lc.recommended(2, 9), {"oracle": lambda _: [1.0, 0.0]}, "policy"),
        (lc.OTFLinTS(2, 9, guard=4.0), {"oracle": lambda _: [1.0, 0.0]}, "policy"),
        (lc.OTFLinTS(2, 9, floor=0.1), {"oracle": lambda _: [1.0, 0.0]}, "oracle"),
        (lc.OTFLinTS(2, 9), {"oracle": lambda _: [1.0, 1.0]}, "oracle"),
        (lc.OTFLinTS(2, 9), {"oracle": lambda _: [1.0]}, "oracle"),
        (lc.OTFLinTS(2, 9), {"oracle": lambda _: [np.nan, 0.0]}, "oracle"),
        (lc.OTFLinTS(2, 9), {"oracle": "shortest path"}, "oracle"),
        (lc.OTFLinTS(2, 9), {"oracle": lambda _: [1.0, 0.0], "actions": [[1.0, 0.0]]}, "actions"),
    ],
)
def test_bad_oracles_are_refused_and_change_nothing(policy: Any, arguments: Any, field: str) -> None:
    before = policy.rng.state()
    with pytest.raises(InputError) as caught:
        policy.decide(**arguments)
    assert caught.value.field == field
    assert (policy.rounds, policy.rng.state()) == (0, before)


def test_oracle_that_fails_changes_nothing_and_many_draws_give_a_propensity() -> None:
    policy = lc.OTFLinTS(2, 9, seed=0, draws=32)
    before = policy.rng.state()
    with pytest.raises(ZeroDivisionError):
        policy.decide(oracle=lambda _: 1 / 0)
    assert (policy.rounds, policy.rng.state()) == (0, before)
    decision = policy.decide(oracle=lambda theta: np.eye(2)[np.argmax(theta)])
    assert decision.propensity in [wins / 32 for wins in range(1, 33)]
    deferred = policy.decide(oracle=lambda theta: np.eye(2)[np.argmax(theta)], deferred=True, subject="ann")
    assert policy.rounds == 1
    assert policy.activate(deferred) is lc.Verdict.ACCEPTED
    assert policy.convert(subject="ann") is lc.Verdict.ACCEPTED
    with pytest.raises(InputError, match="actions must be a"):
        policy.decide()
