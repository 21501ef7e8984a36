"""Choices that are certain: of one action, and of all of them."""

from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.policies.base import bulk
from latecomer.policies.base.search import ExactSearch, summarise


@pytest.mark.parametrize("make", [lc.OTFLinTS, lc.ImputedLinTS, lc.LogisticLinTS, lc.WaitingLinTS, lc.recommended])
def test_what_must_be_chosen_has_propensity_1_whatever_the_policy(make: Any) -> None:
    policy, one = make(2, 50, seed=0), np.eye(2)[:1]
    assert policy.decide(one).propensity == 1.0
    assert policy.decide(one, deferred=True).propensity == 1.0
    assert policy.decide_by_search(ExactSearch(one, summarise(one))).propensity == 1.0
    assert [each.propensity for each in policy.decide_many([one, np.eye(2)])] == [1.0, None]
    assert [each.propensity for each in policy.decide_many(np.stack([one, one]))] == [1.0, 1.0]
    assert (policy.decide(one, k=1, examination=[0.5]).propensity, policy.decide(np.eye(2)).propensity) == (1.0, None)
    assert policy.decide(np.eye(2), k=2).propensities == (1.0, 1.0)


def test_columns_of_a_batch_have_propensity_1_for_what_must_be_chosen() -> None:
    policy, rows = lc.OTFLinTS(2, 50, seed=0), np.eye(2)[[0, 1, 0]]
    signed = bulk.decide_together(policy, rows, np.array([2, 3]), at=None).signed
    np.testing.assert_array_equal(signed, [np.nan, 1.0])
