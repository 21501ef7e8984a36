"""Bad input: refused before anything changed, with the rule, the value and the remedy."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError

GOOD = np.eye(5)


def spoilt(value: float) -> Any:
    actions = GOOD * 0.5
    actions[3, 1] = value
    return actions


BAD_ACTIONS: dict[str, tuple[Any, str]] = {
    "nan": (spoilt(np.nan), r"actions must be finite; action 3 has nan in column 1"),
    "infinity": (spoilt(np.inf), r"actions must be finite; action 3 has inf in column 1"),
    "minus infinity": (spoilt(-np.inf), r"actions must be finite; action 3 has -inf in column 1"),
    "huge": (spoilt(1e308), r"actions must have norm at most 1; action 3 has norm 1e\+308: normalise"),
    "norm above 1": (spoilt(1.5), r"actions must have norm at most 1; action 3 has norm 1.58114: normalise"),
    "empty": (np.empty((0, 5)), r"actions must hold at least one action; got shape \(0, 5\)"),
    "empty list": ([], r"actions must be a \(K, 5\) array, a row per action; got shape \(0,\)"),
    "wrong dimension": (np.ones((10, 4)), r"actions must have 5 columns, one per dimension; got shape \(10, 4\)"),
    "one-dimensional": (np.ones(5), r"actions must be a \(K, 5\) array, a row per action; got shape \(5,\)"),
    "three-dimensional": (np.ones((1, 1, 5)), r"actions must be a \(K, 5\) array, a row per action; got shape"),
    "ragged": ([[1, 0, 0, 0, 0], [1, 0]], r"actions must be a \(K, 5\) array; got rows of different lengths"),
    "strings": ([["0", "0", "0", "0", "1"]], r"actions must be a \(K, 5\) array of numbers; got text"),
    "a string": ("actions", r"actions must be a \(K, 5\) array of numbers; got text"),
    "objects": ([[None] * 5], r"actions must be a \(K, 5\) array of numbers; got dtype object"),
    "complex": (GOOD.astype(complex), r"actions must be a \(K, 5\) array of numbers; got dtype complex128"),
    "masked": (np.ma.masked_array(GOOD, mask=GOOD > 0), r"actions must be a \(K, 5\) array without a mask"),
    "none": (None, r"actions must be a \(K, 5\) array of numbers; got None"),
}


@pytest.mark.parametrize("case", BAD_ACTIONS)
@pytest.mark.parametrize("seeded", [False, True])
def test_bad_actions_are_refused(case: str, seeded: bool) -> None:
    policy: Any = lc.OTFLinTS(5, 10, seed=0) if seeded else lc.OTFLinUCB(5, 10)
    policy.decide(GOOD)
    state, ring, generator = policy.state.record.copy(), policy.state.ring.copy(), policy.rng.state()
    actions, message = BAD_ACTIONS[case]
    with pytest.raises(InputError, match=message):
        policy.decide(actions)
    assert policy.state.record.tobytes() == state.tobytes()
    assert policy.state.ring.tobytes() == ring.tobytes()
    assert policy.rng.state() == generator


def test_rounding_does_not_make_a_norm_too_long() -> None:
    policy = lc.OTFLinUCB(5, 10)
    single = np.random.default_rng(0).random((50, 5)).astype(np.float32)
    single /= np.linalg.norm(single, axis=1, keepdims=True)
    policy.decide(single)
    with pytest.raises(InputError, match="norm at most 1"):
        policy.decide(GOOD * (1 + 1e-5))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, r"value must be in \[0, 1\]; got 1.5, divide it by its largest possible value first"),
        (
            -0.2,
            r"value must be in \[0, 1\]; got -0.2: revoke takes a conversion back, and .* the worst is 0 and the best",
        ),
        (float("nan"), r"value must be a number in \[0, 1\]; got nan"),
        (float("inf"), r"value must be in \[0, 1\]; got inf"),
        ("1", r"value must be a number in \[0, 1\]; got '1'"),
        (None, r"value must be a number in \[0, 1\]; got None"),
    ],
)
def test_bad_values_are_refused(value: Any, message: str) -> None:
    policy = lc.OTFLinUCB(5, 10)
    decision = policy.decide(GOOD)
    with pytest.raises(InputError, match=message):
        policy.convert(decision, value)
    assert policy.pending == 1
    single: Any = np.float32(0.5)
    assert policy.convert(decision, single) is lc.Verdict.ACCEPTED


@pytest.mark.parametrize("decision", ["1", 1.5, float("inf"), float("nan"), True, [1]])
def test_a_decision_is_a_decision_or_a_round(decision: Any) -> None:
    policy = lc.OTFLinUCB(5, 10)
    policy.decide(GOOD)
    with pytest.raises(InputError, match="decision must be a Decision or its round, a whole number; got"):
        policy.convert(decision)
    with pytest.raises(InputError, match="decision must be a Decision or its round, a whole number; got"):
        policy.revoke(decision)
    numpy_round: Any = np.int32(1)
    assert policy.convert(numpy_round) is lc.Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 0}, r"dim must be at least 1 and below 2\^62; got 0"),
        ({"dim": 2.0}, r"dim must be a whole number; got 2.0"),
        ({"dim": True}, r"dim must be a whole number; got True"),
        ({"window": -1}, r"window must be at least 0 and below 2\^62; got -1"),
        ({"window": 2**62}, r"window must be at least 0 and below 2\^62"),
        ({"window": timedelta(days=-1)}, r"window must not be negative; got datetime.timedelta\(days=-1\)"),
        (
            {"window": 1.5},
            r"window must be a number of rounds \(an int\), or a time such as '7d' or a timedelta; got 1.5",
        ),
        (
            {"window": "7 days"},
            r"window must be a whole number and one of s, m, min, h, d, w, .*; got '7 days'",
        ),
        ({"delta": 0}, r"delta must be a probability strictly between 0 and 1; got 0"),
        ({"delta": 1}, r"delta must be a probability strictly between 0 and 1; got 1"),
        ({"delta": float("nan")}, r"delta must be a probability strictly between 0 and 1; got nan"),
        ({"ridge": 0}, r"ridge must be above 0 and finite; got 0"),
        ({"ridge": -1.0}, r"ridge must be above 0 and finite; got -1.0"),
        ({"ridge": float("inf")}, r"ridge must be above 0 and finite; got inf"),
        ({"ridge": 5e-324}, r"ridge must be above 0 and finite; got 5e-324"),
        ({"ridge": 10**400}, r"ridge must be a number above 0; got 1000"),
        ({"ridge": "1"}, r"ridge must be a number above 0; got '1'"),
        ({"ridge": 1e-13}, r"ridge must be between 1e-12 and 1e12, for doubles to tell it from 0; got 1e-13"),
        ({"ridge": 1e300}, r"ridge must be between 1e-12 and 1e12"),
        ({"dim": 100_000}, r"dim must be at most 8192, for V is kept whole; got 100000"),
        ({"window": timedelta.max}, r"window, in microseconds, must be at least 0 and below 2\^62"),
        ({"window": np.timedelta64(4)}, r"window must be a time of a known length, such as 7d; got "),
        ({"clock": 5}, r"clock must be a function that tells the time; got 5"),
        ({"exploration": -1}, r"exploration must be at least 0 and at most 1e9; got -1"),
        ({"width": "wide"}, r"width must be one of 'exact', 'buffered', 'tight', 'variance'; got 'wide'"),
        ({"width": 3}, r"width must be one of 'exact', 'buffered', 'tight', 'variance'; got 3"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lc.OTFLinUCB(**{"dim": 5, "window": 10, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": "bold"}, r"beta must be one of 'heuristic', 'conservative', 'confidence'; got 'bold'"),
        ({"seed": -1}, r"seed must be at least 0 and below 2\^62; got -1; an int, a numpy.random.Generator or None"),
        ({"seed": "x"}, r"seed must be a whole number; got 'x'; an int, a numpy.random.Generator or None"),
    ],
)
def test_bad_parameters_of_sampling(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lc.OTFLinTS(**{"dim": 5, "window": 10, **arguments})


@pytest.mark.parametrize("sets", [None, 3, "x", np.ones((2, 5)), {"a": 1}])
def test_a_batch_is_a_list_of_sets(sets: Any) -> None:
    with pytest.raises(InputError, match=r"action_sets must be an \(N, K, 5\) array"):
        lc.OTFLinUCB(5, 10).decide_many(sets)
