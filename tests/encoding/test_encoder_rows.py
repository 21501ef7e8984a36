"""Rows of declared features: an oracle, pinned values, norms, order, tables, missing and unseen values."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from encoder_oracle import slow_encoded_row
from feature_oracle import slow_row
from hypothesis import given
from hypothesis import strategies as st

import latecomer as lc
from latecomer.errors import InputError

CONTEXT = {"age": {"scale": 30, "center": 40}, "country": ["NO", "SE"], "segment": "hashed"}
ACTIONS = {"price": {"scale": 200}, "genre": ["crime", "poetry", "art"], "sku": "hashed"}
DIMS = [10, 16, 40, 64]


def make(dim: int, **options: Any) -> lc.Encoder:
    return lc.Encoder(dim, context=CONTEXT, actions=ACTIONS, **options)


TEXTS = st.sampled_from(["NO", "SE", "crime", "art", "x", "süß"])
CATEGORY = TEXTS | st.lists(TEXTS, max_size=4) | st.booleans() | st.none() | st.sampled_from([17, 17.5])
NUMBER = st.floats(-1e9, 1e9) | st.none()
CONTEXTS = st.fixed_dictionaries({}, optional={"age": NUMBER, "country": CATEGORY, "segment": CATEGORY})
ROWS = st.fixed_dictionaries({}, optional={"price": NUMBER, "genre": CATEGORY, "sku": CATEGORY})
INTERACTIONS = st.none() | st.lists(
    st.sampled_from([("age", "price"), ("country", "genre"), ("country", "sku"), ("genre", "price"), ("genre", "sku")]),
    unique=True,
)


@given(context=CONTEXTS, actions=st.lists(ROWS, min_size=1, max_size=3), dim=st.sampled_from(DIMS), pairs=INTERACTIONS)
def test_declared_rows_match_the_oracle_and_have_norms_at_most_one(
    context: Any, actions: Any, dim: int, pairs: Any
) -> None:
    encoder = make(dim, interactions=pairs)
    rows = encoder.encode(context, actions)
    np.testing.assert_allclose(rows, [slow_encoded_row(encoder.spec, context, row) for row in actions], atol=1e-12)
    assert (np.linalg.norm(rows, axis=1) <= 1.0 + 1e-12).all()


@given(context=CONTEXTS, actions=st.lists(ROWS, min_size=1, max_size=4), data=st.data())
def test_declared_row_depends_on_no_order_and_on_no_other_row(context: Any, actions: Any, data: st.DataObject) -> None:
    one = make(40)
    names = data.draw(st.permutations(list(ACTIONS)))
    other = lc.Encoder(40, context=dict(reversed(CONTEXT.items())), actions={name: ACTIONS[name] for name in names})
    assert one == other
    around = dict(data.draw(st.permutations(list(context.items()))))
    for row, action in zip(one.encode(context, actions), actions, strict=True):
        shuffled = dict(data.draw(st.permutations(list(action.items()))))
        np.testing.assert_allclose(other.encode(around, [shuffled])[0], row, rtol=0, atol=1e-15)


def test_declared_rows_match_pinned_values() -> None:
    """These numbers, the oracle's, may never be edited: policies in production have learnt with them."""
    encoder = lc.Encoder(9, context={"country": ["NO", "SE"]}, actions={"price": {"scale": 200}, "sku": "hashed"})
    rows = encoder.encode({"country": "SE"}, [{"price": 50, "sku": "a"}, {"price": -400, "sku": ["a", "b"]}])
    r = 0.4082482904638631  # 1/√6: country, price, sku, and two products
    pinned: Any = [
        [r, 0.0, r, r / 4, 0.0, 0.07216878364870322, 0.0, -0.21650635094610965, 0.28867513459481287],
        [r, 0.0, r, -r, 0.0, -0.28867513459481287, 0.0, -0.49279927982674443, 0.2041241452319315],
    ]
    np.testing.assert_allclose(rows, pinned, rtol=0, atol=1e-15)


def test_one_hot_rows_are_exact() -> None:
    """Where every term has its own column, a row is (1, c) ⊗ (1, a), in some order, over its divisor."""
    encoder = lc.Encoder(
        15, context={"country": ["NO", "SE"]}, actions={"price": {"scale": 10}, "genre": ["a", "b", "c"]}
    )
    row = encoder.encode({"country": "NO"}, [{"price": 5, "genre": "b"}])[0] * np.sqrt(6)
    by_hand = np.outer([1.0, 1.0, 0.0], [1.0, 0.5, 0.0, 1.0, 0.0]).ravel()  # (1, NO, SE) ⊗ (1, price, a, b, c)
    assert sorted(row.round(12)) == sorted(by_hand)
    wide = lc.Encoder(30, context={"country": ["NO", "SE"]}, actions={"price": {"scale": 10}, "genre": ["a", "b", "c"]})
    widened = wide.encode({"country": "NO"}, [{"price": 5, "genre": "b"}])[0]
    np.testing.assert_array_equal(widened, np.append(row / np.sqrt(6), np.zeros(15)))


def test_encoder_without_declarations_hashes_any_name() -> None:
    scales: Any = {"price": {"scale": 200}}
    encoder = lc.Encoder(7, scales=scales)
    row = encoder.encode({"hour": "noon"}, [{"price": 50.0, "genre": "crime"}])[0]
    expected = slow_row({"hour": "noon"}, {"price": 50.0, "genre": "crime"}, 7, encoder.spec.scales)
    np.testing.assert_allclose(row, expected, rtol=0, atol=1e-15)
    with pytest.raises(InputError, match="'age' must have a declared scale"):
        encoder.encode({"age": 40}, [{}])


# ---- values ----


def test_missing_value_is_a_name_left_out() -> None:
    encoder = make(40)
    for missing in (None, float("nan"), pd.NA, pd.NaT, np.float32("nan")):
        left_out = encoder.encode({"age": 30}, [{"genre": "art"}])
        found = encoder.encode({"age": 30, "country": missing}, [{"genre": "art", "price": missing, "sku": missing}])
        np.testing.assert_array_equal(found, left_out)


def test_unseen_level_has_no_term_where_one_hot_and_its_own_where_hashed() -> None:
    encoder = make(64)
    unseen, missing = encoder.encode({}, [{"genre": "horror"}, {}])
    np.testing.assert_array_equal(unseen, missing)
    one, other, none = encoder.encode({}, [{"sku": "new 1"}, {"sku": "new 2"}, {}])
    assert np.linalg.norm(one - other) > 0.1
    assert np.linalg.norm(one - none) > 0.1


def test_wild_price_does_not_drown_categories() -> None:
    encoder = make(64)
    for price in (0.0, 150.0, 1e12):
        crime, art = encoder.encode({}, [{"price": price, "genre": genre} for genre in ("crime", "art")])
        assert np.linalg.norm(crime - art) == pytest.approx(np.sqrt(2 / 16), rel=1e-12)


def test_context_changes_differences_between_actions_unless_nothing_interacts() -> None:
    actions = [{"genre": "crime"}, {"genre": "art"}]
    for pairs, changes in ((None, True), ([], False), ([("genre", "price")], False), ([("country", "genre")], True)):
        encoder = make(64, interactions=pairs)
        north, south = (encoder.encode({"country": country}, actions) for country in ("NO", "SE"))
        assert np.allclose(north[0] - north[1], south[0] - south[1]) != changes


@pytest.mark.parametrize(
    ("context", "action", "rule", "field"),
    [
        ({"contry": "NO"}, {}, r"context: 'contry' is none of the features.*did you mean 'country'", "context"),
        ({}, {"price": "12"}, r"action 0: 'price' must be a number, as declared", r"actions[0]"),
        ({}, {"price": np.inf}, r"action 0: 'price' must be a finite number", r"actions[0]"),
        ({}, {"sku": b"a"}, r"action 0: 'sku' must be a number, a text", r"actions[0]"),
        ([1], {}, r"context must be names with values", "context"),
    ],
)
def test_unusable_features_are_refused_by_name(context: Any, action: Any, rule: str, field: str) -> None:
    with pytest.raises(InputError, match=rule) as raised:
        make(40).encode(context, [action])
    assert raised.value.field == field


# ---- tables ----

FRAME = pl.DataFrame(
    {
        "id": [1, 2, 3, 4],
        "age": [25, None, 60, 31],
        "country": ["NO", "SE", None, "DK"],
        "segment": [["a", "b"], ["b"], None, []],
        "price": [12.5, 150.0, None, 1e6],
        "genre": ["crime", "art", "horror", None],
        "sku": [17, 18, None, 17],
    }
)


class ArrowOnly:
    """A table of another library, which gives nothing but Arrow's stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return FRAME.__arrow_c_stream__(requested_schema)


def tables() -> dict[str, Any]:
    pandas = pd.DataFrame(FRAME.to_dict(as_series=False))
    return {
        "polars": FRAME,
        "lazy": FRAME.lazy(),
        "pandas": pandas,
        "nullable": pandas.convert_dtypes(),
        "categories": pandas.astype({"country": "category", "genre": "category"}),
        "arrow": ArrowOnly(),
        "rows": FRAME.to_dicts(),
    }


@pytest.mark.parametrize("case", tables())
def test_table_gives_the_bits_of_its_rows(case: str) -> None:
    encoder, table = make(24, interactions=[("age", "sku"), ("country", "genre"), ("genre", "price")]), tables()[case]
    rows = [
        encoder.encode({name: row[name] for name in CONTEXT}, [{name: row[name] for name in ACTIONS}])[0]
        for row in FRAME.to_dicts()
    ]
    assert encoder.encode_frame(table).tobytes() == np.array(rows).tobytes()


@pytest.mark.parametrize("case", ["polars", "pandas", "arrow"])
def test_actions_may_be_a_table_or_have_ids(case: str) -> None:
    encoder, context = make(24), {"country": "NO", "age": np.int64(50)}
    rows = [{name: row[name] for name in ACTIONS} for row in FRAME.to_dicts()]
    expected = encoder.encode(context, rows)
    np.testing.assert_array_equal(encoder.encode(context, tables()[case]), expected)
    np.testing.assert_array_equal(encoder.encode(context, {str(i): row for i, row in enumerate(rows)}), expected)


def test_long_table_is_encoded_in_parts() -> None:
    """More rows than one part takes, with lists here and there."""
    encoder, count = make(24), 30_000
    frame = pl.DataFrame({name: FRAME[name] for name in FRAME.columns})
    long = pl.concat([frame] * (count // 4))
    np.testing.assert_array_equal(encoder.encode_frame(long), np.tile(encoder.encode_frame(frame), (count // 4, 1)))


def test_table_without_a_column_is_refused() -> None:
    with pytest.raises(InputError, match=r"frame must have the columns .*missing: genre"):
        make(24).encode_frame(FRAME.drop("genre"))
    with pytest.raises(InputError, match="declares the names"):
        lc.Encoder(8).encode_frame(FRAME)
    with pytest.raises(InputError, match="'price' must be a finite number"):
        make(24).encode_frame(FRAME.with_columns(price=pl.lit(float("inf"))))
