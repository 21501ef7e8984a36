"""The options of a decision: their names, and that none of them outlasts the decision."""

import inspect

import numpy as np
import pytest

import latecomer as lc
from latecomer.policies.base.choice_probabilities import NO_CONTROL
from latecomer.policies.base.decision_options import DecisionOptions

ACTIONS = np.eye(2)


def test_an_unknown_option_is_named_with_the_nearest_one() -> None:
    policy = lc.Uniform(2, 10, seed=0)
    with pytest.raises(TypeError, match=r"decide\(\) got an unexpected keyword argument 'subjct'.*'subject'"):
        policy.decide(ACTIONS, subjct="ann")  # type: ignore[call-arg]
    assert policy.rounds == 0


def test_the_signature_shows_every_option_with_its_default() -> None:
    shown = inspect.signature(lc.Uniform(2, 10).decide).parameters
    assert list(shown) == ["actions", "at", *DecisionOptions.__annotations__]
    assert (shown["k"].default, shown["deferred"].default, shown["subject"].default) == (1, False, None)


def test_places_hold_for_one_decision() -> None:
    """A limit of nearly all holds where its action is said to be, and not in the decisions after it."""
    policy = lc.Uniform(2, 10, seed=0, limits={"a": {"floor": 0.9}})
    assert policy.decide(ACTIONS, places={"a": 1}).propensity in (pytest.approx(0.9), pytest.approx(0.1))
    assert policy.decide(ACTIONS).propensity == pytest.approx(0.5)
    np.testing.assert_allclose(policy.probabilities(ACTIONS, places={"a": 0}), [0.9, 0.1])
    assert policy.decide(ACTIONS).propensity == pytest.approx(0.5)


def test_a_refused_decision_leaves_no_control_behind() -> None:
    policy = lc.Uniform(2, 10, seed=0, control={"share": 0.5, "policy": "old offer"})
    policy.decide(ACTIONS, control=0)
    for refused in (2 * ACTIONS, ACTIONS * np.nan):
        with pytest.raises(lc.errors.InputError):
            policy.decide(refused, control=1)
        assert policy.state.number("control_index") == NO_CONTROL
    assert policy.rounds == 1
