"""Hashing of features: pinned values, an oracle, norms, and the sizes of numbers."""

import math
from typing import Any

import numpy as np
import pytest
from feature_oracle import mix, slow_row
from hypothesis import given
from hypothesis import strategies as st

from latecomer.errors import InputError
from latecomer.service.bandit_spec import Scale
from latecomer.service.features import digest_features, hash_features

CONTEXT: dict[str, Any] = {"hour": "noon", "age": 0.5, "member": True}
ACTIONS: list[dict[str, Any]] = [
    {"colour": "red", "price": 0.25},
    {"tags": ["new", "süß"], "price": -1.0, "note": None},
]
SHOP = {"price": Scale(scale=200.0), "discount": Scale(scale=50.0), "age": Scale(scale=30.0, center=40.0)}


# ---- the formula ----


def test_hash_features_matches_pinned_values() -> None:
    """These numbers, the oracle's, may never be edited: bandits in production have learnt with them."""
    pinned: Any = [
        [0.27785148465887516, -0.7122061749982721, 0.5402943396538616, -0.34382367068882097, 0.07367650086189023],
        [0.24794558234810185, -0.04694597396974176, 0.38695879513943643, -0.35064800528718065, 0.8146336176309262],
    ]
    np.testing.assert_allclose(hash_features(CONTEXT, ACTIONS, 5), pinned, rtol=0, atol=1e-15)
    assert mix(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF  # SplitMix64's first number for the seed 0, as published


FEATURES = st.dictionaries(
    st.text(max_size=5) | st.sampled_from(["price", "age"]),
    st.floats(-1, 1) | st.text(max_size=5) | st.booleans() | st.none() | st.lists(st.text(max_size=3)),
    max_size=4,
)


@given(context=FEATURES, actions=st.lists(FEATURES, min_size=1, max_size=3), dim=st.integers(3, 9))
def test_hash_features_matches_the_oracle(context: Any, actions: Any, dim: int) -> None:
    expected = [slow_row(context, action, dim) for action in actions]
    np.testing.assert_allclose(hash_features(context, actions, dim), expected, rtol=0, atol=1e-12)


@given(price=st.floats(-1e308, 1e308), age=st.floats(-1e308, 1e308))
def test_scaled_numbers_match_the_oracle(price: float, age: float) -> None:
    expected = slow_row({"age": age}, {"price": price}, 7, SHOP)
    np.testing.assert_allclose(hash_features({"age": age}, [{"price": price}], 7, scales=SHOP)[0], expected, atol=1e-12)


@given(context=FEATURES, actions=st.lists(FEATURES, min_size=1, max_size=3), dim=st.integers(3, 9))
def test_hashed_rows_have_norms_at_most_one(context: Any, actions: Any, dim: int) -> None:
    assert (np.linalg.norm(hash_features(context, actions, dim), axis=1) <= 1.0 + 1e-12).all()


@given(context=FEATURES, actions=st.lists(FEATURES, min_size=2, max_size=4), data=st.data())
def test_hashed_row_is_independent_of_other_rows_and_of_order(context: Any, actions: Any, data: st.DataObject) -> None:
    rows = hash_features(context, actions, 6)
    shuffled = dict(data.draw(st.permutations(list(context.items()))))
    for row, action in zip(rows, actions, strict=True):
        again = dict(data.draw(st.permutations(list(action.items()))))
        assert hash_features(shuffled, [again], 6)[0].tobytes() == row.tobytes()


def test_context_changes_differences_between_actions() -> None:
    noon, night = (hash_features({"hour": hour}, ACTIONS, 50) for hour in ("noon", "night"))
    assert not np.allclose(noon[0] - noon[1], night[0] - night[1])


def test_action_without_features_is_the_constant() -> None:
    np.testing.assert_array_equal(hash_features({}, [{}], 3), [[1.0, 0.0, 0.0]])


def test_list_of_texts_counts_as_a_set_with_the_weight_of_one() -> None:
    many = hash_features({}, [{"tags": [f"t{i}" for i in range(30)], "kind": "book"}], 2000)[0]
    assert math.isclose(np.linalg.norm(many), 1.0, rel_tol=0.1)
    assert math.isclose(many[0], 1 / math.sqrt(3), rel_tol=0.1)
    twice, once = hash_features({}, [{"tags": ["b", "a", "b"]}, {"tags": ["a", "b"]}], 9)
    np.testing.assert_array_equal(twice, once)
    np.testing.assert_array_equal(hash_features({}, [{"tags": []}], 9), hash_features({}, [{"tags": None}], 9))


# ---- sizes ----


@pytest.mark.parametrize("context", [{}, {"country": "NO"}, {"country": "SE", "age": 25}])
def test_size_of_a_number_is_kept_in_the_row(context: dict[str, Any]) -> None:
    rows = hash_features(context, [{"discount": size} for size in (0, 5, 20, 50)], 16, scales=SHOP)
    for one in range(4):
        for other in range(one):
            assert np.linalg.norm(rows[one] - rows[other]) > 0.03


@pytest.mark.parametrize("context", [{}, {"country": "NO"}])
def test_hashed_row_is_linear_in_a_number(context: dict[str, Any]) -> None:
    """Half the discount is half way: no row is divided by what depends on it."""
    low, middle, high = hash_features(context, [{"discount": size} for size in (0, 25, 50)], 64, scales=SHOP)
    np.testing.assert_allclose(middle, (low + high) / 2, atol=1e-12)


def test_scaled_price_does_not_outweigh_categories() -> None:
    """Two genres at a price of 150 differ as much as they do at a price of 0."""
    for price in (0, 150, 10_000):
        crime, poetry = hash_features({}, [{"price": price, "genre": g} for g in ("crime", "poetry")], 64, scales=SHOP)
        assert math.isclose(np.linalg.norm(crime - poetry), math.sqrt(2 / 3), rel_tol=1e-9)


@pytest.mark.parametrize("size", [150, 1.5, -2, np.float32(7), np.int64(5)])
def test_number_without_scale_is_refused_with_advice(size: Any) -> None:
    for context, action, where in (({"x": size}, {}, "context"), ({}, {"x": size}, "action 0")):
        with pytest.raises(InputError, match=rf"{where}: 'x' must have a declared scale.*features.*label"):
            hash_features(context, [action], 5)
    rows = hash_features({}, [{"x": value} for value in (-1, -0.5, 0, 0.5, 1)], 5)
    assert len(np.unique(rows.round(9), axis=0)) == 5


def test_numbers_beyond_the_scale_are_clipped() -> None:
    at, beyond = hash_features({}, [{"price": 200}, {"price": 1e300}], 5, scales=SHOP)
    np.testing.assert_array_equal(at, beyond)
    low, lower = hash_features({}, [{"age": 10}, {"age": -1e300}], 5, scales=SHOP)
    np.testing.assert_array_equal(low, lower)


def test_text_for_a_declared_number_is_refused() -> None:
    for value in ("12.5", True, ["12.5"]):
        with pytest.raises(InputError, match="action 0: 'price' must be a number, as declared"):
            hash_features({}, [{"price": value}], 5, scales=SHOP)


def test_few_hash_collisions_with_as_many_columns_as_terms() -> None:
    """Six contexts, eight genres and a discount: 69 terms in 64 columns, and values that depend on all of them."""
    sizes = (0.0, 0.5, 1.0)
    explained = []
    for draw in range(20):
        rng = np.random.default_rng(draw)
        actions = [{f"genre{draw}": f"g{i}", f"discount{draw}": size} for i in range(8) for size in sizes]
        rows = np.concatenate([hash_features({f"shop{draw}": f"s{i}"}, actions, 64) for i in range(6)])
        genre, both = rng.normal(size=(1, 8, 1)), rng.normal(0, 0.5, (6, 8, 1))
        slope = rng.normal() + rng.normal(0, 0.5, (6, 1, 1))
        values = (genre + both + slope * np.array(sizes)).ravel()
        values -= values.mean()
        fitted = rows @ np.linalg.solve(rows.T @ rows + 1e-3 * np.eye(64), rows.T @ values)
        explained.append(1 - np.mean((values - fitted) ** 2) / np.mean(values**2))
    assert np.mean(explained) > 0.98


# ---- values of no use ----


@pytest.mark.parametrize("value", [math.inf, -math.inf, np.float32("inf"), 10**400])
def test_infinite_numbers_are_refused(value: float) -> None:
    with pytest.raises(InputError, match="action 0: 'x' must be a finite number"):
        hash_features({}, [{"x": value}], 3)


@pytest.mark.parametrize("value", [[1], [["a"]], {"a": 1}, b"a", object(), 1j, np.datetime64("2026-01-01")])
def test_unusable_feature_values_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="'x' must be a number, a text, a truth value or a list of texts"):
        hash_features({"x": value}, [{}], 3)


@pytest.mark.parametrize("dim", [1, 2])
def test_hash_features_refuses_too_few_dimensions(dim: int) -> None:
    with pytest.raises(InputError, match="actions with features need a bandit of at least 3 dimensions"):
        hash_features({}, [{"x": 1}], dim)


def test_features_digest_ignores_order_and_sees_sizes() -> None:
    one = digest_features({"a": 1.0, "b": "x"}, [("i", {"c": 1.0, "d": None})])
    assert digest_features({"b": "x", "a": 1.0}, [("i", {"d": None, "c": 1.0})]) == one
    assert digest_features({"a": 1.0, "b": "x"}, [("i", {"c": 0.5, "d": None})]) != one
