"""The record of a decision: its action is that of the moment it was made."""

import copy
import pickle

import numpy as np
import pytest
from msgspec import structs

import latecomer as lc

ROWS = np.array([[0.6, 0.0], [0.0, 0.8]])
POLICIES = {
    "plain": lc.OTFLinUCB(2, 100),
    "sampler": lc.OTFLinTS(2, 100, seed=0),
    "randomised": lc.OTFLinTS(2, 100, seed=0, floor=0.1, draws=8),
}


@pytest.mark.parametrize("name", POLICIES)
def test_the_action_is_a_copy_of_the_chosen_row(name: str) -> None:
    policy, rows = POLICIES[name], ROWS.copy()
    first, second = policy.decide(rows), policy.decide(rows)
    rows[:] = 0.0
    for decision in (first, second, *policy.decide_many(ROWS[None])):
        assert decision.action.dtype == np.float64
        assert decision.action.tolist() == ROWS[decision.index].tolist()
        assert decision.action is decision.action
        decision.action[0] = 0.5  # the caller's own
        assert policy.decide(ROWS).action.tolist() != decision.action.tolist()


@pytest.mark.parametrize("is_read", [False, True])
def test_copies_and_texts_have_the_action(is_read: bool) -> None:
    decision = lc.OTFLinUCB(2, 100).decide(ROWS)
    packed = ROWS[decision.index].tobytes()
    assert decision.packed_action == packed
    if is_read:
        assert decision.action.tobytes() == packed
    for other in (copy.copy(decision), copy.deepcopy(decision), pickle.loads(pickle.dumps(decision))):  # noqa: S301
        assert structs.asdict(other).keys() == structs.asdict(decision).keys()
        assert other.packed_action == packed
        assert other.action.tolist() == ROWS[decision.index].tolist()
        assert repr(other) == repr(decision)
    assert repr(decision).startswith("Decision(round=1, index=1, action=array([0. , 0.8]), score=")


def test_a_decision_is_frozen() -> None:
    decision = lc.OTFLinUCB(2, 100).decide(ROWS)
    with pytest.raises(AttributeError):
        decision.action = ROWS[0]  # type: ignore[misc]
