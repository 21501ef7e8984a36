"""Matured policies beyond 32 dimensions, where a factor follows G: definitions, bits, and how often it is made anew."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extended_oracle import ExtendedOracle
from oracle_comparison import compare_with_oracle
from policy_cases import unit_actions
from recommended_oracle import RecommendedOracle

import latecomer as lc
from latecomer.core.state import UNSTAMPED
from latecomer.policies.base.bulk import record, summarise
from latecomer.policies.recommended import constants

DIM = 40


@pytest.mark.parametrize(
    ("window", "rounds"), [(20, 60), *(pytest.param(window, 100, marks=pytest.mark.soak) for window in (0, 20, 300))]
)
def test_recommended_chooses_as_its_definition(window: int, rounds: int) -> None:
    oracle = RecommendedOracle(DIM, window, **constants(DIM))
    policy, twin = lc.recommended(DIM, window, seed=3), np.random.default_rng(3)
    verdicts = compare_with_oracle(policy, oracle, rounds=rounds, seed=3, normals=twin, check_every=4)
    assert verdicts[lc.Verdict.ACCEPTED] > 10


@pytest.mark.parametrize(
    ("ridge", "rounds"), [(0.01, 90), *(pytest.param(ridge, 200, marks=pytest.mark.soak) for ridge in (0.01, 3.0))]
)
def test_matured_ucb_chooses_as_its_definition(ridge: float, rounds: int) -> None:
    oracle = ExtendedOracle(DIM, 40, kind="matured UCB", ridge=ridge)
    compare_with_oracle(
        lc.MaturedLinUCB(DIM, 40, ridge=ridge), oracle, rounds=rounds, seed=4, check_every=4 if rounds > 90 else 7
    )


@pytest.mark.parametrize(
    ("dim", "window", "rounds"), [(DIM, 600, 110), *(pytest.param(*one, 1000, marks=pytest.mark.soak)
    for one in ((DIM, 600), (50, 600), (50, 10), (200, 10), (200, 600)))]
)  # fmt: skip
def test_many_rounds_later(dim: int, window: int, rounds: int) -> None:
    """θ̂ and scores are still those of the definition, up to 50 dimensions with a grown ridge; new factors were few."""
    policy, normals = lc.recommended(dim, window, seed=5), np.random.default_rng(5)
    oracle = RecommendedOracle(dim, window, **constants(dim))
    rng = np.random.default_rng([dim, window])
    due: dict[int, list[int]] = {}
    growths = set()
    for t in range(1, rounds + 1):
        actions = np.abs(unit_actions(rng, 5, dim))
        z = normals.standard_normal(dim)
        oracle.observe(actions, t)
        expected = oracle.scores(actions, t, z) if t % 100 == 0 else np.empty(0)
        decision = policy.decide(actions)
        if len(expected):
            assert decision.score == pytest.approx(expected.max(), rel=1e-9)
            assert expected[decision.index] == pytest.approx(expected.max(), rel=1e-9)  # sets repeat an action
        oracle.follow(decision.action, t)
        if rng.random() < 0.3:
            due.setdefault(t + int(rng.geometric(1 / (1 + window / 5))) - 1, []).append(t)
        for round in due.pop(t, []):
            assert policy.convert(round) is oracle.convert(round, 1.0, t)
        growths.add(oracle.growth)
    np.testing.assert_allclose(policy.theta_hat, oracle.estimate(rounds + 1), rtol=1e-9, atol=1e-12)
    assert max(growths) > 1.5 or dim > 50
    assert policy.state.number("factorisations") <= 32 * rounds / dim


def _decide(policy: Any, sets: Any) -> list[tuple[int, float]]:
    """Play the sets, each third decision converting ten rounds later; return the choices and scores."""
    seen = []
    for actions in sets:
        decision = policy.decide(actions)
        seen.append((decision.index, decision.score))
        if decision.round > 10 and decision.round % 3 == 0:
            policy.convert(decision.round - 10)
    return seen


def test_saved_and_replayed_policies_continue_bit_for_bit(tmp_path: Path) -> None:
    sets = np.abs(unit_actions(np.random.default_rng(6), 80 * 4, DIM)).reshape(80, 4, DIM)
    live, saved, replayed = (lc.recommended(DIM, 30, seed=6) for _ in range(3))
    _decide(saved, sets[:40])
    saved.save(tmp_path / "policy")
    restored = lc.load(tmp_path / "policy")
    for part in (sets[:40], sets[40:60]):
        for actions in part:
            decision = live.decide(actions)
            record(replayed, decision.action[None], summarise(actions)[None], np.full(1, UNSTAMPED))
            if decision.round > 10 and decision.round % 3 == 0:
                live.convert(decision.round - 10)
                replayed.convert(decision.round - 10)
    _decide(restored, sets[40:60])
    expected = _decide(live, sets[60:])
    assert _decide(restored, sets[60:]) == expected
    assert _decide(replayed, sets[60:]) == expected
