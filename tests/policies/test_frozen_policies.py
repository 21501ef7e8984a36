"""`freeze`: a policy decides, and neither its rounds nor their conversions teach it."""

from pathlib import Path

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make, unit_actions

import latecomer as lc
from latecomer.policies.base import bulk

SETS = [unit_actions(np.random.default_rng(t), 3, 2) for t in range(40)]


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_frozen_policy_learns_nothing_from_its_rounds(name: str) -> None:
    policy = make(name, 2, 5)
    for actions in SETS[:20]:
        policy.convert(policy.decide(actions))
    policy.freeze()
    V, B = policy.V, policy.B
    late = [policy.decide(actions) for actions in SETS[:6]]  # whatever was open closes, for those that wait
    V, B = (policy.V, policy.B) if name.startswith("Waiting") else (V, B)
    for actions in SETS[20:]:
        assert policy.convert(policy.decide(actions)) is lc.Verdict.ACCEPTED
    np.testing.assert_array_equal(policy.V, V)
    np.testing.assert_array_equal(policy.B, B)
    assert policy.convert(late[0]) is lc.Verdict.LATE  # windows go on
    policy.unfreeze()
    for actions in SETS[:12]:
        policy.decide(actions)
    assert not np.array_equal(policy.V, V)


def test_rounds_of_before_take_their_conversions_while_the_policy_is_frozen() -> None:
    policy = lc.recommended(2, 50, seed=0)
    early = policy.decide(SETS[0])
    policy.freeze()
    frozen = policy.decide(SETS[1])
    assert policy.convert(early, 0.5) is policy.convert(frozen) is lc.Verdict.ACCEPTED
    np.testing.assert_allclose(policy.B, 0.5 * early.action)
    assert policy.revoke(frozen) is lc.Verdict.ACCEPTED
    np.testing.assert_allclose(policy.B, 0.5 * early.action)


def test_frozen_choices_keep_exploring_with_propensities() -> None:
    policy = lc.recommended(2, 50, floor=0.3, draws=16, seed=0)
    policy.freeze()
    decisions = [policy.decide(SETS[0]) for _ in range(60)]
    assert len({decision.index for decision in decisions}) > 1
    assert all(decision.propensity is not None and decision.propensity > 0.0999 for decision in decisions)


def test_saved_batched_and_recorded_rounds_are_frozen_alike(tmp_path: Path) -> None:
    saved, batch, recorded = (lc.recommended(2, 9, seed=4) for _ in range(3))
    for policy in (saved, batch, recorded):
        policy.decide_many(SETS[:10])
        policy.freeze()
    saved.save(tmp_path / "one")
    one = lc.load(tmp_path / "one")
    assert one.is_frozen
    decisions = [one.decide(actions) for actions in SETS]
    batch.decide_many(SETS)
    chosen = np.array([decision.action for decision in decisions])
    bulk.record(recorded, chosen, np.array([bulk.summarise(each) for each in SETS]), np.zeros(len(SETS), np.int64))
    for frozen in (one, batch, recorded):
        frozen.unfreeze()
        assert not frozen.is_frozen
    found = {policy.decide(SETS[3]).score for policy in (one, batch, recorded)}
    assert len(found) == 1


def test_fresh_policy_learns() -> None:
    """A template that was frozen before its first round plays as one that was not."""
    frozen = lc.OTFLinUCB(2, 10)
    frozen.freeze()
    fresh = frozen.fresh()
    fresh.decide(np.eye(2))
    assert fresh.V[0, 0] == 2.0
