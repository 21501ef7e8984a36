"""Features into vectors: the hash is a promise, so it is pinned."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.errors import InputError
from latecomer.service.features import hashed

CONTEXT: dict[str, Any] = {"hour": "noon", "age": 0.5, "member": True}
ACTIONS: list[dict[str, Any]] = [{"colour": "red", "price": 0.25}, {"tags": ["new", "süß"], "price": -1, "note": None}]


def test_the_hash_never_changes() -> None:
    """These numbers may never be edited: bandits in production have learnt with them."""
    pinned: Any = [
        [-0.49143609346716094, -0.552865605150556, 0.12285902336679023, -0.24571804673358047, 0.6142951168339511],
        [-0.565685424949238, 0.0, -0.565685424949238, -0.4242640687119285, 0.4242640687119285],
    ]
    np.testing.assert_allclose(hashed(CONTEXT, ACTIONS, 5), pinned, rtol=0, atol=1e-15)


def test_what_the_module_says_is_what_it_does() -> None:
    """A term's column and sign, straight from the description."""
    from hashlib import blake2b

    h = int.from_bytes(blake2b(b"acolour\x00red", digest_size=8).digest(), "little")
    expected = np.zeros(7)
    expected[(h >> 1) % 7] = -1.0 if h % 2 else 1.0
    np.testing.assert_array_equal(hashed({}, [{"colour": "red"}], 7)[0], expected)


def test_a_context_changes_what_distinguishes_actions() -> None:
    noon, night = (hashed({"hour": hour}, ACTIONS, 50) for hour in ("noon", "night"))
    assert not np.allclose(noon[0] - noon[1], night[0] - night[1])


def test_order_does_not_matter() -> None:
    there, back = hashed(CONTEXT, ACTIONS, 5), hashed(dict(reversed(list(CONTEXT.items()))), ACTIONS, 5)
    np.testing.assert_array_equal(there, back)


def test_nothing_is_zero() -> None:
    np.testing.assert_array_equal(hashed({}, [{}], 3), np.zeros((1, 3)))


FEATURES = st.dictionaries(
    st.text(max_size=5),
    st.one_of(st.floats(-1e100, 1e100), st.text(max_size=5), st.booleans(), st.none(), st.lists(st.text(max_size=3))),
    max_size=4,
)


@given(context=FEATURES, actions=st.lists(FEATURES, min_size=1, max_size=3), dim=st.integers(1, 9))
def test_norms_are_one_or_zero(context: Any, actions: Any, dim: int) -> None:
    norms = np.linalg.norm(hashed(context, actions, dim), axis=1)
    assert all(math.isclose(norm, 1.0, rel_tol=1e-9) or norm == 0.0 for norm in norms)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e101, 10**400])
def test_numbers_that_are_none(value: float) -> None:
    with pytest.raises(InputError, match="action 0: 'x' must be a number"):
        hashed({}, [{"x": value}], 3)


@pytest.mark.parametrize("value", [[1], [["a"]], {"a": 1}, b"a", object()])
def test_values_of_no_use(value: Any) -> None:
    with pytest.raises(InputError, match="numbers, texts or lists of texts"):
        hashed({"x": value}, [{}], 3)
