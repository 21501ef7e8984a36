"""A store's microseconds go through a policy's seconds unchanged."""

from hypothesis import given
from hypothesis import strategies as st

from latecomer.timestamps import parse_timestamp


@given(st.integers(0, 5 * 10**15))
def test_stamp_survives_conversion_to_seconds(stamp: int) -> None:
    """Until the year 2128: a double has 53 bits, of which a microsecond count takes 52."""
    assert parse_timestamp(stamp / 1e6) == stamp
