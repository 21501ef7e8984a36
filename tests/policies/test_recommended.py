"""`recommended`: a policy like any other, in rounds and in time."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_cases import unit_actions

import latecomer as lc
from latecomer.errors import InputError

SETS = [unit_actions(np.random.default_rng(i), 4, 2) for i in range(60)]


@pytest.mark.parametrize("window", [10, timedelta(seconds=10)])
def test_recommended_decides_learns_and_continues_from_a_file(tmp_path: Path, window: Any) -> None:
    def play(policy: Any, i: int) -> tuple[int, float, lc.Verdict]:
        at = {"at": float(i)} if isinstance(window, timedelta) else {}
        decision = policy.decide(SETS[i], **at)
        return decision.index, decision.score, policy.convert(max(1, decision.round - 3), **at)

    policy, twin = lc.recommended(2, window, seed=3), lc.recommended(2, window, seed=3)
    assert isinstance(policy, lc.Policy)
    assert [play(policy, i) for i in range(30)] == [play(twin, i) for i in range(30)]
    policy.save(tmp_path / "policy")
    loaded = lc.load(tmp_path / "policy")
    assert repr(loaded) == repr(policy)
    assert [play(policy, i) for i in range(30, 60)] == [play(loaded, i) for i in range(30, 60)]


def test_recommended_finds_the_better_arm() -> None:
    """Rates of 0.2 and 0.6, delays of up to 20 rounds: by then it should hardly ever play the worse."""
    rng, arms = np.random.default_rng(0), np.eye(2)
    policy = lc.recommended(2, 30, seed=1)
    due: dict[int, list[int]] = {}
    chosen = []
    for t in range(1, 1501):
        decision = policy.decide(arms)
        chosen.append(decision.index)
        if rng.random() < (0.2, 0.6)[decision.index]:
            due.setdefault(t + int(rng.integers(0, 21)), []).append(decision.round)
        for round in due.pop(t, []):
            assert policy.convert(round) is lc.Verdict.ACCEPTED
    assert np.mean(chosen[-500:]) > 0.95


def test_recommended_takes_a_dimension_and_a_window_alone() -> None:
    assert lc.recommended(2, 10).dim == 2
    with pytest.raises(InputError, match="dim must be at least 1"):
        lc.recommended(0, 10)
    with pytest.raises(InputError, match="window must be a number of rounds"):
        lc.recommended(2, 7.5)  # type: ignore[arg-type]
