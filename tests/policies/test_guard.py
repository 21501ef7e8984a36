"""The guard: a policy proposes, a confidence set judges; off it is nothing, and propensities stay exact."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make, unit_actions
from variance_oracle import VarianceOracle

import latecomer as lc
from latecomer.core.linalg.products import argmax_first
from latecomer.core.state import UNSTAMPED
from latecomer.policies.base import bulk

GUARDABLE = [name for name in EVERY_POLICY if name != "OTFLinUCB-variance"]
ARMS = np.eye(2)


def mislead(policy: Any, *, seed: int, rounds: int) -> list[lc.Decision]:
    """Play two arms: the first converts at once and then never, the second always a little."""
    rng, decisions = np.random.default_rng(seed), []
    for t in range(rounds):
        decision = policy.decide(ARMS)
        if rng.random() < ((0.9 if t < 20 else 0.02), 0.6)[decision.index]:
            policy.convert(decision)
        decisions.append(decision)
    return decisions


@pytest.mark.parametrize("kappa", [0.0, 0.05, pytest.param(0.5, marks=pytest.mark.soak)])
def test_a_guarded_policy_plays_what_the_definition_says(kappa: float) -> None:
    """Greedy with a guard against its own proposals and the oracle's verdict, to the last choice."""
    guarded, proposer = lc.Greedy(2, 5, guard=kappa), lc.Greedy(2, 5)
    oracle, rng, refused = VarianceOracle(2, 5), np.random.default_rng(3), 0
    for t in range(1, 80):
        actions = ARMS if t % 2 else unit_actions(rng, 4, 2)
        proposed = argmax_first(proposer.scores(actions))
        expected = oracle.guarded(actions, t, proposed, kappa)
        decision = guarded.decide(actions)
        assert decision.index == expected
        assert decision.propensity == 1.0
        refused += expected != proposed
        oracle.reach = 1 + 2 * kappa
        oracle.record(decision.action, t)
        bulk.record(proposer, decision.action[None], bulk.summarise(actions)[None], np.array([UNSTAMPED]))
        if rng.random() < 0.6 * decision.action[1]:
            for each in (guarded, proposer):
                each.convert(t)
            oracle.convert(t, 1.0, t)
    assert guarded.certificate == pytest.approx(oracle.certificate, rel=1e-9)
    assert refused > 0, "the guard has had something to do"


@pytest.mark.parametrize("name", GUARDABLE)
def test_a_guard_that_allows_everything_changes_no_choice(name: str) -> None:
    guarded, plain = make(name, 2, 7, guard=1e9), make(name, 2, 7)
    for ours, theirs in zip(mislead(guarded, seed=1, rounds=25), mislead(plain, seed=1, rounds=25), strict=True):
        assert (ours.index, ours.score, ours.propensity) == (theirs.index, theirs.score, theirs.propensity)
    assert plain.state.record.dtype.itemsize < guarded.state.record.dtype.itemsize, "off, it has no fields"
    assert plain.certificate is None
    assert guarded.certificate is not None


def test_the_guard_ends_a_mistake() -> None:
    """Greedy stays with an arm that began well for as long as its estimate lasts; the guard does not."""
    share = {}
    for kappa in (None, 0.2):
        policy = lc.Greedy(2, 0, guard=kappa)
        share[kappa] = np.mean([decision.index for decision in mislead(policy, seed=0, rounds=300)[150:]])
    assert share[0.2] > share[None] + 0.3


def test_a_guarded_policy_saves_loads_replays_and_pickles(tmp_path: Path) -> None:
    policy = lc.OTFLinTS(2, 7, guard=0.3, seed=5)
    chosen = np.array([decision.action for decision in mislead(policy, seed=2, rounds=80)])
    policy.save(tmp_path / "policy")
    twins = [lc.load(tmp_path / "policy"), pickle.loads(pickle.dumps(policy))]  # noqa: S301
    sets = np.stack([ARMS] * 40)
    expected = [(d.index, d.score) for d in policy.decide_many(sets)]
    for twin in twins:
        assert [(d.index, d.score) for d in (twin.decide(ARMS) for _ in sets)] == expected
    live, replayed = (lc.OTFLinTS(2, 7, guard=0.3, seed=5) for _ in range(2))
    acts = np.array([live.decide(ARMS).action for _ in chosen])
    bulk.record(replayed, acts, np.tile(bulk.summarise(ARMS), (len(acts), 1)), np.full(len(acts), UNSTAMPED))
    for field in live.state.saved_fields():
        if field != "head":
            np.testing.assert_array_equal(live.state.record[field], replayed.state.record[field], err_msg=field)


@pytest.mark.parametrize("make_policy", [lc.OTFLinTS, lc.recommended])
def test_propensities_of_a_guarded_sampler_are_those_of_its_map(make_policy: Any) -> None:
    """What the guard refuses goes to argmax U; the rest is as without it, given the same samples."""
    policy = make_policy(2, 0, guard=0.05, draws=32, floor=0.1, seed=4)
    mislead(policy, seed=0, rounds=150)
    oracle_refuses = 0
    for _ in range(30):
        chances = policy.probabilities(ARMS)
        decision = policy.decide(ARMS)
        assert chances.sum() == pytest.approx(1.0)
        assert decision.propensity == chances[decision.index]
        assert (chances >= 0.05 - 1e-12).all(), "the floor comes after the guard"
        oracle_refuses += int(np.isclose(chances, 0.05).any())
        if np.random.default_rng(policy.rounds).random() < 0.6 * decision.action[1]:
            policy.convert(decision)
    assert oracle_refuses > 0
    assert policy.certificate is None


def test_uniform_play_with_a_guard_knows_its_probabilities() -> None:
    """A propensity is ½, or 1 where one of two actions is refused; and both happen."""
    policy, seen = lc.Uniform(2, 0, guard=0.02, seed=0), set()
    for t in range(150):
        chances = policy.probabilities(ARMS) if t % 10 == 0 else None
        decision = policy.decide(ARMS)
        seen.add(decision.propensity)
        assert chances is None or decision.propensity == pytest.approx(chances[decision.index])
        if decision.index == 1:
            policy.convert(decision)
    assert seen == {0.5, 1.0}


@pytest.mark.parametrize(("kwargs", "message"), [
    ({"guard": -1.0}, "guard must be"),
    ({"guard": np.nan}, "guard must be"),
    ({"width": "variance", "guard": 4.0}, "guard is for policies without a confidence set of their own"),
])  # fmt: skip
def test_guards_that_make_no_sense_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(lc.errors.InputError, match=message):
        lc.OTFLinUCB(2, 5, **kwargs)
