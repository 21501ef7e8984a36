"""`recommended`, and each of its refinements, against the slow one that is written from the definitions."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from oracle_comparison import compare_with_oracle
from recommended_oracle import RecommendedOracle

import latecomer as lc
from latecomer.policies.recommended import complete, constants

OFF = {
    "ridge": 1.0,
    "exploration": 1.0,
    "final_exploration": 1.0,
    "optimism": 0.0,
    "prior": 0.0,
    "shrinkage": 1.0,
    "context_discount": 0.0,
    "optimism_discount": 0.0,
}


def compare(
    dim: int, window: int | timedelta, parameters: dict[str, Any] | None = None, *, seed: int, rounds: int
) -> Any:
    if parameters is None:
        policy, parameters = lc.recommended(dim, window, seed=seed), constants(dim)
    else:
        policy = lc.MaturedLinTS(dim, window, seed=seed, **parameters)
    span = window if isinstance(window, int) else window // timedelta(microseconds=1)
    oracle = RecommendedOracle(dim, span, **parameters)
    twin = np.random.default_rng(seed)
    verdicts = compare_with_oracle(
        policy, oracle, rounds=rounds, seed=seed, normals=twin, check_every=3 if rounds > 90 else 8
    )
    assert verdicts[lc.Verdict.ACCEPTED] > 20
    return oracle


@pytest.mark.parametrize(
    ("span", "rounds"),
    [
        *((span, 70) for span in (0, 100, 10**9)),
        *(pytest.param(span, 220, marks=pytest.mark.soak) for span in (0, 7, 100, 4_000, 10**9)),
    ],
)
def test_recommended_chooses_as_its_definition(span: int, rounds: int) -> None:
    oracle = compare(2, span, seed=span % 97, rounds=rounds)
    assert oracle.growth == 1.0  # agreement in two dimensions is no evidence


@pytest.mark.parametrize(
    ("span", "rounds"), [(20, 80), *(pytest.param(span, 110, marks=pytest.mark.soak) for span in (20, 10**9))]
)
def test_recommended_in_five_dimensions(span: int, rounds: int) -> None:
    oracle = compare(5, span, seed=3, rounds=rounds)
    assert oracle.growth > 1.5


@pytest.mark.parametrize("rounds", [70, pytest.param(110, marks=pytest.mark.soak)])
def test_recommended_with_a_window_in_time(rounds: int) -> None:
    compare(2, timedelta(microseconds=40), seed=4, rounds=rounds)


@pytest.mark.parametrize("rounds", [60, pytest.param(100, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("dim", "changed"),
    [
        (2, {"prior": 0.7}),
        (2, {"context_discount": 0.8, "optimism_discount": 0.8}),
        (3, {"optimism": 1.5, "optimism_discount": 0.4}),
        (2, {"final_exploration": 0.1}),
        (3, {"prior": 1.0, "shrinkage": 5.0}),
        (4, {"shrinkage": 9.0}),
    ],
)
def test_each_refinement_alone(dim: int, changed: dict[str, float], rounds: int) -> None:
    compare(dim, 7, {**OFF, **changed}, seed=5, rounds=rounds)


def test_fewer_dimensions_have_less_of_the_prior_and_of_the_discount() -> None:
    """(d − 2)/3 of both below five dimensions."""
    assert [constants(dim)["prior"] for dim in (1, 2, 3, 4, 5, 30)] == pytest.approx([0, 0, 1 / 3, 2 / 3, 1, 1])
    assert [constants(dim)["optimism_discount"] for dim in (2, 3, 5)] == pytest.approx([0, 0.2, 0.6])


def test_a_refinement_is_not_added_to_what_is_given() -> None:
    given = complete(5, {"exploration": 0.2, "context_discount": 0.1})
    policy = lc.MaturedLinTS(5, 10, **given)
    assert policy.parameters["final_exploration"] == 0.2
    assert policy.parameters["optimism_discount"] == 0.1


def test_final_exploration_is_at_most_the_first() -> None:
    with pytest.raises(lc.errors.InputError, match=r"final_exploration must be at most exploration, 0\.2; got 0\.3"):
        lc.MaturedLinTS(5, 10, exploration=0.2, final_exploration=0.3)
