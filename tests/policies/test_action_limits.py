"""`limits`: a floor and a ceiling of single actions, by their ids; probabilities are exact and the nearest ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import latecomer as lc
from latecomer.errors import InputError
from latecomer.policies.base.limits import MOST, limit_probabilities

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
LIMITS = {"a": {"floor": 0.3}, "b": {"ceiling": 0.1}, "other": {"floor": 0.2}}
PLACES = {"a": 0, "b": 1}


class Numbers:
    """A state as `limit_probabilities` reads it."""

    def __init__(self, floor: float, ceiling: float, low: list[float], high: list[float]) -> None:
        self.floor, self.ceiling = floor, ceiling
        self.limit_places = np.array([*range(len(low)), *[-1] * (MOST - len(low))])
        self.limit_low, self.limit_high = (np.resize(np.array(side or [0.0]), MOST) for side in (low, high))


def solve_slowly(own: Any, low: Any, high: Any) -> Any:
    """The nearest probabilities within bounds, by a general solver."""
    found = minimize(
        lambda p: ((p - own) ** 2).sum(),
        np.full(len(own), 1.0 / len(own)),
        jac=lambda p: 2.0 * (p - own),
        bounds=list(zip(low, high, strict=True)),
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0, "jac": lambda p: np.ones(len(p))},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_probabilities_are_the_nearest_within_the_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, floor = int(rng.integers(2, 7)), float(rng.choice([0.0, 0.2]))
    own = rng.dirichlet(np.full(count, 0.5))
    limited = int(rng.integers(1, count))
    low = (rng.dirichlet(np.ones(limited)) * 0.7 * rng.random()).tolist()
    high = [least + (1.0 - least) * float(rng.random()) for least in low]
    found = own.copy()
    limit_probabilities(Numbers(floor, 1.0, low, high), found)  # type: ignore[arg-type]
    played = (1.0 - floor) * found + floor / count
    assert played.sum() == pytest.approx(1.0, abs=1e-12)
    assert (played[:limited] >= np.array(low) - 1e-12).all()
    reach = np.maximum(np.array(high), floor / count)  # the policy's own floor comes first
    assert (played[:limited] <= reach + 1e-12).all()
    bounds = np.array([*low, *[0.0] * (count - limited)]), np.array([*high, *[1.0] * (count - limited)])
    least, most = (np.clip((side - floor / count) / (1.0 - floor), 0.0, 1.0) for side in bounds)
    np.testing.assert_allclose(found, solve_slowly(own, least, np.maximum(least, most)), atol=2e-5)


def test_ceilings_that_cannot_all_be_kept_leave_equal_parts() -> None:
    found = np.array([0.9, 0.1])
    limit_probabilities(Numbers(0.0, 1.0, [0.0, 0.0], [0.2, 0.4]), found)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, [0.4, 0.6])  # 0.4 is left over


@pytest.mark.parametrize("make", [lc.recommended, lc.OTFLinUCB, lc.OTFLinTS, lc.Uniform])
def test_a_policy_draws_its_choices_within_the_limits(make: Any) -> None:
    policy = make(2, 50, limits=LIMITS, draws=8, seed=1)
    plain = make(2, 50, draws=8, floor=1e-9, seed=1)
    chosen = np.zeros(3)
    for _ in range(100):
        probabilities = policy.probabilities(ROWS, places=PLACES)
        assert probabilities[0] >= 0.3 - 1e-12
        assert probabilities[1] <= 0.1 + 1e-12
        decision = policy.decide(ROWS, places=PLACES)
        assert decision.propensity == pytest.approx(probabilities[decision.index], abs=1e-12)
        chosen[decision.index] += 1
    assert chosen[0] > 15
    assert chosen[1] < 25
    np.testing.assert_allclose(policy.fresh(1).probabilities(ROWS), plain.fresh(1).probabilities(ROWS), atol=1e-8)


def test_limits_are_saved_and_subjects_and_deferrals_keep_them(tmp_path: Path) -> None:
    policy = lc.OTFLinUCB(2, 50, limits={"b": {"ceiling": 0.0}}, seed=1)
    for number in range(20):
        decision = policy.decide(ROWS, places={"b": 2}, subject="x", deferred=number % 2 == 0)
        assert decision.index != 2
    policy.save(tmp_path / "policy")
    again = lc.load(tmp_path / "policy")
    assert again.parameters["limits"] == {"b": {"floor": 0.0, "ceiling": 0.0}}
    assert [again.decide(ROWS, places={"b": 1}).index for _ in range(9)] == [
        policy.decide(ROWS, places={"b": 1}).index for _ in range(9)
    ]


@pytest.mark.parametrize(
    "limits",
    [
        *([], {"": {"floor": 0.1}}, {1: {"floor": 0.1}}, {"a": {}}, {"a": 0.3}, {"a": {"most": 1}}),
        *({"a": {"floor": 2}}, {"a": {"floor": 0.5, "ceiling": 0.4}}, {"a": {"floor": 0.6}, "b": {"floor": 0.6}}),
        {str(i): {"floor": 0.0} for i in range(MOST + 1)},
    ],
)
def test_wrong_limits_are_refused(limits: Any) -> None:
    with pytest.raises(InputError, match="limits") as refused:
        lc.recommended(2, 10, limits=limits)
    assert refused.value.field == "limits"


def test_wrong_places_are_refused_and_change_nothing() -> None:
    policy = lc.OTFLinUCB(2, 10, limits={"a": {"floor": 0.1}}, seed=1)
    for places in ({"b": 0}, {"a": 3}, {"a": -1}):
        with pytest.raises(InputError, match="places"):
            policy.decide(ROWS, places=places)
    with pytest.raises(InputError, match="places is for a policy with limits"):
        lc.OTFLinUCB(2, 10).decide(ROWS, places={"a": 0})
    with pytest.raises(InputError, match="without a ceiling or limits"):
        policy.decide(ROWS, k=2)
    with pytest.raises(InputError, match="decide_many is for policies without limits"):
        policy.decide_many([ROWS])
    assert policy.rounds == 0


def test_a_store_finds_limited_actions_by_their_ids(path: Path) -> None:
    parameters = {"limits": {"b": {"ceiling": 0.05}, "c": {"floor": 0.9}}}
    with lc.open(path, dim=2, window=50, policy="LinUCB", parameters=parameters) as shop:
        answers = [shop.decide(ROWS, ids=["a", "b", "c"]) for _ in range(20)]
        answers += shop.decide_many([{"actions": ROWS, "ids": ["b", "c", "a"]}] * 20)  # type: ignore[arg-type]
        assert sum(answer.action_id == "c" for answer in answers) > 30
        assert all((answer.propensity or 0.0) >= 0.9 for answer in answers if answer.action_id == "c")
        assert {answer.propensity for answer in answers if answer.action_id == "b"} <= {0.05}
        later = shop.decide(ROWS[:2], ids=["a", "c"], deferred=True)
        assert later.propensity in (pytest.approx(0.9), pytest.approx(0.1), 1.0)
        assert shop.decide(ROWS).propensity == 1.0  # without ids none is limited
    with lc.open(path) as shop:
        assert shop.decide(ROWS, ids=["c", "a", "x"]).propensity in (pytest.approx(0.9), pytest.approx(0.1), 1.0)
