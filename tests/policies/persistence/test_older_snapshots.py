"""Snapshots of versions before this one."""

import numpy as np
from policy_cases import unit_actions

import latecomer as lc
from latecomer.policies.persistence.snapshot import PolicySnapshot

SETS = [unit_actions(np.random.default_rng(i), 4, 2) for i in range(21)]


def test_a_snapshot_from_before_a_parameter_existed() -> None:
    """The parameter has its default, which is what the policy did then."""
    policy = lc.MaturedLinTS(2, 30, seed=3)
    actions = []
    for i in range(20):
        decision = policy.decide(SETS[i])
        policy.convert(decision)
        actions.append(decision.action)
    snapshot = PolicySnapshot.capture(policy)
    for where, name in ((snapshot.parameters, "final_exploration"), (snapshot.arrays, "state/final_exploration")):
        del where[name]
    older = snapshot.restore(np.array(actions), np.arange(1, 21))
    assert older.decide(SETS[20]).score == policy.decide(SETS[20]).score
