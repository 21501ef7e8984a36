"""Decimal numbers from text are the nearest doubles, as Python's own reader has them."""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.service.http.decimal_numbers import POWERS, SCALES, count_before, find_others, read_digits, read_number
from latecomer.tiers.interpreter import interpret
from latecomer.tiers.tiered_kernel import TieredKernel

AFTER = ", "
"""What may follow a number; a text ends with a zero."""


def text_of(number: str) -> Any:
    return np.frombuffer((number + AFTER + "\0").encode(), np.uint8)


@pytest.fixture(scope="module")
def read() -> Callable[[str], tuple[int, float]]:
    code = TieredKernel(read_number, lambda: (text_of("1"), 0, POWERS, SCALES)).compile()
    return lambda number: code(text_of(number), 0, POWERS, SCALES)


def assert_is_read(read: Callable[[str], tuple[int, float]], number: str) -> None:
    place, value = read(number)
    assert place == len(number), number
    nearest = float(json.loads(number))  # an integer −0 is 0
    assert (value, math.copysign(1.0, value)) == (nearest, math.copysign(1.0, nearest)), number


def near_ties(random: Random, count: int) -> list[str]:
    """Return decimals beside the middle of two doubles, which 17 to 18 digits hardly tell apart."""
    found = []
    for _ in range(count):
        low = random.uniform(0.1, 9.9) * 10.0 ** -random.randrange(6)
        middle = (Decimal(low) + Decimal(math.nextafter(low, math.inf))) / 2
        digits = random.randrange(14, 19)
        unit = Decimal(1).scaleb(middle.adjusted() - digits + 1)
        below = middle // unit * unit
        found += [f"{below:f}", f"{below + unit:f}"]
    return found


def test_any_double_below_ten_is_read_as_it_is_written(read: Callable[[str], tuple[int, float]]) -> None:
    random = Random(1)  # noqa: S311
    for _ in range(100_000):
        number = repr(random.choice((-1, 1)) * random.random() * 10.0 ** -random.randrange(30))
        assert_is_read(read, number)


def test_decimals_of_any_length_are_rounded_to_the_nearest_double(read: Callable[[str], tuple[int, float]]) -> None:
    random = Random(2)  # noqa: S311
    for _ in range(50_000):
        zeros = "0" * random.choice((0, 0, 1, 5))
        digits = zeros + "".join(random.choices("0123456789", k=random.randrange(1, 18 - len(zeros))))
        exponent = random.choice(("", "", "", f"e-{random.randrange(60)}", f"E-0{random.randrange(9)}", "e+0", "e0"))
        assert_is_read(read, f"{random.choice('-0123456789').replace('-', '-1')}.{digits}{exponent}")


def test_decimals_beside_the_middle_of_two_doubles_are_rounded(read: Callable[[str], tuple[int, float]]) -> None:
    random = Random(3)  # noqa: S311
    for number in near_ties(random, 50_000):
        assert_is_read(read, number)


@pytest.mark.parametrize(
    "number",
    ["0", "-0", "0.0", "-0.0", "1", "9", "1.0", "0.5", "0.125", "0.2500000000000000", "1e-5", "2E-05", "1e-30", "0e-50",
     "0.30000000000000004", "0.1000000000000000055", "5e-99", "9.007199254740993e-16",
     "0.00000000000000000001", "0.000000012345678901", "9.000000000000000001", "1e0", "1e+0", "1e-0", "1.5e+00",
     "-0e-1", "-0E0"],
)  # fmt: skip
def test_numbers_of_all_kinds_are_read(read: Callable[[str], tuple[int, float]], number: str) -> None:
    assert_is_read(read, number)
    place, value = interpret(read_number, text_of(number), 0, POWERS, SCALES)
    nearest = float(json.loads(number))
    assert (place, value, math.copysign(1.0, value)) == (len(number), nearest, math.copysign(1.0, nearest))


@pytest.mark.parametrize(
    "number",
    ["", "-", ".5", "+1", "1.", "-.5", "1.e5", "1e", "1e-", "1e+", "1e5", "1e-100", "5e-324", "NaN", "true", '"1"',
     "[1]", "0.25000000000000000", "9.999999999999999999", "0." + 20 * "1", "0.5" + 23 * "0",
     "1.23456789012345678901234567890"],
)  # fmt: skip
def test_what_is_no_number_or_an_unusual_one_is_left(read: Callable[[str], tuple[int, float]], number: str) -> None:
    assert read(number)[0] == -1
    assert interpret(read_number, text_of(number), 0, POWERS, SCALES)[0] == -1


@pytest.mark.parametrize("number", ["01", "12", "-10.5", "1.5.2", "1-", "1x", "1e-5.5"])
def test_a_number_ends_before_what_does_not_belong_to_it(read: Callable[[str], tuple[int, float]], number: str) -> None:
    """So that the reader of rows finds neither a comma nor a bracket there."""
    assert -1 <= read(number)[0] < len(number)


@given(text=st.binary(min_size=8, max_size=8) | st.from_regex(rb"[0-9./:]{8}", fullmatch=True))
def test_tiers_count_the_same_digits_and_read_them(text: bytes) -> None:
    word = int.from_bytes(text, "little", signed=True)
    others, count = (DIGITS[0](word), count_before(find_others(word))) if find_others(word) else (0, 8)
    assert (DIGITS[0](word) == 0) == (count == 8)
    if count < 8:
        assert DIGITS[1](others) == count
    assert count == len(text) - len(text.lstrip(b"0123456789"))
    assert DIGITS[2](word, count) == read_digits(word, count) == int(text[:count] or b"0")


DIGITS = [
    TieredKernel(find_others, lambda: (1,)).compile(),
    TieredKernel(count_before, lambda: (1,)).compile(),
    TieredKernel(read_digits, lambda: (1, 1)).compile(),
]
