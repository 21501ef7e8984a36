"""Rankings: k different actions, each a round of its own, with exact propensities of the first and of inclusions."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.policies.base.ranking_policy import estimate_examination
from latecomer.policies.base.search import ExactSearch, summarise

ROWS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.6, 0.6, 0.0], [0.5, 0.5, 0.5]])


@pytest.mark.parametrize("make", [lc.OTFLinTS, lc.recommended, lc.OTFLinUCB, lc.Greedy, lc.Uniform, lc.ImputedLinTS])
def test_a_ranking_is_k_rounds_that_are_credited_one_by_one(make: Any) -> None:
    policy, twin = (make(3, 30, **({} if make in (lc.OTFLinUCB, lc.Greedy) else {"seed": 4})) for _ in range(2))
    for turn in range(12):
        decision = policy.decide(ROWS, k=3)
        assert len(set(decision.indices)) == 3
        assert (decision.round, decision.index) == (3 * turn + 1, decision.indices[0])
        assert policy.convert(decision, position=2) is lc.Verdict.ACCEPTED
        assert policy.convert(decision, position=2) is lc.Verdict.DUPLICATE
        assert policy.convert(decision.find_round(2)) is lc.Verdict.DUPLICATE
        record_twin(twin, decision)
    assert policy.revoke(decision, position=2) is lc.Verdict.ACCEPTED
    assert policy.revoke(decision, position=3) is lc.Verdict.UNKNOWN
    assert policy.V.tobytes() == twin.V.tobytes()  # what a log's replay makes of it
    assert policy.rng.state() == twin.rng.state()


def record_twin(twin: Any, decision: Any) -> None:
    """Record the rounds of a ranking as a log has them."""
    draws = twin.rng.draws(3, 3)
    rows = ROWS[list(decision.indices)]
    twin.state.record_many(rows, np.tile(summarise(ROWS), (3, 1)), np.full(3, -(2**63)), draws)
    twin.convert(decision.round + 1)


def test_the_first_of_a_ranking_is_the_choice_of_a_search() -> None:
    ranked, searched = (lc.OTFLinTS(3, 30, seed=9) for _ in range(2))
    decision, choice = ranked.decide(ROWS, k=2), searched.decide_by_search(ExactSearch(ROWS, summarise(ROWS)))
    assert (decision.index, decision.score) == (choice.index, choice.score)
    assert decision.propensities == (None, None)
    assert lc.OTFLinUCB(3, 30).decide(ROWS, k=2).propensities == (1.0, 1.0)


@pytest.mark.parametrize("make", [lc.OTFLinTS, lc.recommended, lc.ImputedLinTS])
def test_a_search_is_ranked_as_the_actions_are(make: Any) -> None:
    listed, searched = (make(3, 30, seed=4) for _ in range(2))
    search = ExactSearch(ROWS, summarise(ROWS))
    for _ in range(8):
        one, other = listed.decide(ROWS, k=3), searched.rank_by_search(search, 3)
        assert (one.indices, one.score, one.propensities) == (other.indices, other.score, other.propensities)
    assert listed.V.tobytes() == searched.V.tobytes()
    assert listed.rng.state() == searched.rng.state()
    with pytest.raises(InputError, match="k must be at most the number of actions, 5") as refused:
        searched.rank_by_search(search, 6)
    assert refused.value.field == "k"
    with pytest.raises(InputError, match="a search needs a policy that plays"):
        lc.OTFLinUCB(3, 30).rank_by_search(search, 2)
    assert listed.rng.state() == searched.rng.state()


@pytest.mark.parametrize("control", [None, {"share": 0.2, "policy": "uniform"}, {"share": 0.2, "policy": 3}])
def test_propensities_are_those_of_the_first_and_of_each_inclusion(control: Any) -> None:
    """Importance weights have the mean 1: of every action to be first, and of every action to be included."""
    policy = lc.OTFLinTS(3, 30, seed=1, floor=0.3, draws=8, control=control)
    first, included = np.zeros((400, len(ROWS))), np.zeros((400, len(ROWS)))
    for turn in range(400):
        decision: Any = policy.decide(ROWS, k=2)
        first[turn, decision.index] = 1.0 / decision.propensity
        included[turn, list(decision.indices)] = 1.0 / np.array(decision.propensities)
        assert not decision.is_control or control["policy"] == "uniform" or decision.index == 3
    for weights in (first, included):
        np.testing.assert_allclose(weights.mean(axis=0), 1.0, atol=0.35)
    error = np.concatenate([first, included], axis=1)
    within = np.abs(error.mean(axis=0) - 1.0) <= 4.5 * error.std(axis=0) / 20.0
    assert within.all()


def test_uniform_ranks_every_order_alike() -> None:
    policy = lc.Uniform(3, 30, seed=0)
    orders = list(permutations(range(3), 2))
    found = [orders.index(policy.decide(ROWS[:3], k=2).indices) for _ in range(600)]  # type: ignore[arg-type]
    counts = np.bincount(found, minlength=6)
    assert ((counts - 100) ** 2 / 100).sum() < 20.5  # chi squared with 5 degrees of freedom, 0.1 %
    decision = policy.decide(ROWS[:3], k=2)
    assert decision.propensity == pytest.approx(1 / 3)
    assert decision.propensities == pytest.approx((2 / 3, 2 / 3))


def test_examination_scales_what_is_learnt() -> None:
    policy = lc.OTFLinUCB(3, 30)
    decision: Any = policy.decide(ROWS, k=2, examination=[1.0, 0.5])
    policy.convert(decision, position=2)
    rows = ROWS[list(decision.indices)] * [[1.0], [0.5]]
    np.testing.assert_allclose(policy.V, np.eye(3) + rows.T @ rows, atol=1e-12)
    np.testing.assert_allclose(policy.B, rows[1], atol=1e-12)
    assert decision.action.tolist() == ROWS[decision.index].tolist()


def test_examination_is_estimated_from_random_orders() -> None:
    generator, truth = np.random.default_rng(2), np.array([1.0, 0.5, 0.25])
    positions = np.tile([1, 2, 3], 20_000)
    rates = 0.3 * truth[positions - 1] * generator.uniform(0.5, 1.5, len(positions))
    found = estimate_examination(positions, generator.random(len(positions)) < rates)
    np.testing.assert_allclose(found, truth, atol=0.03)
    assert estimate_examination([1, 2, 3] * 4, [1, 0, 1] * 4) == [1.0, 0.5, 0.5]
    for places, converted in (([], []), ([1, 2], [0, 1]), ([1, 3], [1, 1]), ([0, 1], [1, 1]), ([1], [1, 1])):
        with pytest.raises(InputError):
            estimate_examination(places, converted)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"k": 6}, "k"),
        ({"k": 0}, "k"),
        ({"k": 2.5}, "k"),
        ({"k": 2, "examination": [1.0]}, "examination"),
        ({"k": 2, "examination": [1.0, 0.0]}, "examination"),
        ({"k": 2, "examination": "ab"}, "examination"),
        ({"k": 2, "deferred": True}, "deferred"),
        ({"k": 2, "oracle": lambda theta: theta}, "oracle"),
        ({"k": 2, "actions": 2 * ROWS}, "actions"),
    ],
)
def test_bad_rankings_are_refused_and_change_nothing(arguments: Any, field: str) -> None:
    policy = lc.OTFLinTS(3, 30, seed=0)
    before = policy.rng.state()
    with pytest.raises(InputError) as caught:
        policy.decide(**{"actions": ROWS, **arguments})
    assert caught.value.field == field
    assert (policy.rounds, policy.rng.state()) == (0, before)
    with pytest.raises(InputError) as caught:
        lc.OTFLinTS(3, 30, guard=4.0).decide(ROWS, k=2)
    assert caught.value.field == "k"
    decision = policy.decide(ROWS, k=2)
    for target, position in ((decision, 3), (decision, 0), (decision.round, 2)):
        with pytest.raises(InputError) as caught:
            policy.convert(target, position=position)
        assert caught.value.field == "position"
