"""Decimal numbers as JSON writes them: digits from text, eight at a time, and the double that is nearest.

A number is whole · 10^−decimals. A table has 10^−decimals in 96 bits, so that two products of integers give 64 bits of
the quotient, of which a double keeps 53. Where these do not tell to which side to round, the quotient is a number that
one division of doubles gives exactly, or it is left to a reader of any number. This is the way of Eisel and Lemire
("Number Parsing at a Gigabyte per Second", 2021).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel, kernel_noinline, vectorised
from latecomer.core.state import Array

Unsigned = npt.NDArray[np.uint64]
Text = npt.NDArray[np.uint8]
"""The bytes of a body. A bytes object has a zero after its last byte: it may be looked at, and is in no number."""

_MOST_DECIMALS = 99
_EXACT_DECIMALS, _EXACT_WHOLE = 22, 2**53
"""A whole number and a power of ten up to these are doubles, and their quotient as doubles is correctly rounded."""
_MOST_WHOLE = 2**63 - 1
_IN_DOUBT = 2**64 - 2**34
"""The next 64 bits of a quotient from which on what the products leave out, less than 2^33, might carry over."""

_ZEROS = 0x3030303030303030
_ONES = 0x0101010101010101
_TENS = 0x7676767676767676
"""Added to a byte, sets its highest bit where that is 10 or more."""
_HIGHEST_BITS = -0x7F7F7F7F7F7F7F80
_PAIRS = 0x000000FF000000FF
_MINUS, _PLUS, _DOT, _ZERO, _NINE, _E, _LOWER = 0x2D, 0x2B, 0x2E, 0x30, 0x39, 0x65, 0x20
_SHIFTS = 8


def _make_powers() -> Unsigned:
    """Return, for k decimals, 64 and 32 bits of 10^−k; then 10^k and the most that k digits may follow, for k < 8."""
    found = np.zeros((_MOST_DECIMALS + 1, 4), np.uint64)
    for k in range(_MOST_DECIMALS + 1):
        power = 2 ** (95 + _bits(k)) // 10**k
        found[k, :2] = power >> 32, power & (2**32 - 1)
        if k < 8:
            found[k, 2:] = 10**k, (_MOST_WHOLE - 10**k) // 10**k
    return found.reshape(-1)


def _bits(decimals: int) -> int:
    """Return the bits of 10^decimals less one."""
    return int(10**decimals - 1).bit_length()


def _make_scales() -> Array:
    """Return, for k decimals, the unit of the quotient where the whole was shifted by 8j bits; then the exact division.

    That has 10^k, and the greatest whole number for which it is correctly rounded.
    """
    found = np.empty((_MOST_DECIMALS + 1, _SHIFTS + 2))
    for k in range(_MOST_DECIMALS + 1):
        found[k, :_SHIFTS] = 2.0 ** (1 - _bits(k) - 8.0 * np.arange(_SHIFTS))
        found[k, _SHIFTS:] = (10.0**k, _EXACT_WHOLE) if k <= _EXACT_DECIMALS else (1.0, 0)
    found[0, -1] = _MOST_WHOLE
    return found.reshape(-1)


POWERS, SCALES = _make_powers(), _make_scales()
"""The tables that the kernels take as arguments."""


def _find_others(word: int) -> int:
    text = (int(word) % 2**64).to_bytes(8, "little")
    count = len(text) - len(text.lstrip(b"0123456789"))
    return 0 if count == 8 else 0x80 << 8 * count


@vectorised(_find_others)
def find_others(word: int) -> int:
    """Return a number whose lowest bit is the highest of the first byte that is no digit; 0 where all are digits."""
    distances = word ^ _ZEROS
    return ((distances + _TENS) | distances) & _HIGHEST_BITS


def _count_before(others: int) -> int:
    return ((int(others) & -int(others)).bit_length() - 1) // 8


@vectorised(_count_before)
def count_before(others: int) -> int:
    """Return how many of the eight bytes are digits before the first that is none."""
    return (((((others & -others) - 1) >> 7) & _ONES) * _ONES) >> 56


def _read_digits(word: int, count: int) -> int:
    return int((int(word) % 2**64).to_bytes(8, "little")[:count] or b"0")


@vectorised(_read_digits)
def read_digits(word: int, count: int) -> int:
    """Return the number that the first `count` characters of a word are, digits all."""
    digits = ((word ^ _ZEROS) << (4 * (8 - count))) << (4 * (8 - count))  # by 64 at once is not defined
    pairs = digits * 10 + (digits >> 8)
    return ((pairs & _PAIRS) * 0x000F424000000064 + ((pairs >> 16) & _PAIRS) * 0x0000271000000001) >> 32


@kernel
def byte_at(text: Text, place: int) -> Any:
    """Return a byte of a text; a place is never negative, of which an unsigned number tells the compiler."""
    return np.int64(text[np.uint64(place)])


@kernel
def word_at(text: Text, place: int) -> int:
    """Return the eight bytes from a place on, with zeros after the last of the text."""
    word = 0
    if place + 8 <= len(text):
        for i in range(8):  # one load, as the compiler sees
            word |= byte_at(text, place + i) << 8 * i
    else:
        for i in range(len(text) - place):
            word |= byte_at(text, place + i) << 8 * i
    return word


@kernel
def to_double(whole: int, decimals: int, powers: Unsigned, scales: Array) -> Any:
    """Return the double nearest to whole · 10^−decimals, or −1 where that is not known."""
    w, shifts = whole, 0
    if w < 1 << 31:
        w, shifts = w << 32, 4
    if w < 1 << 47:
        w, shifts = w << 16, shifts + 2
    if w < 1 << 55:
        w, shifts = w << 8, shifts + 1
    power = powers[4 * decimals]
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b = np.uint64(w) >> half, np.uint64(w) & low_half
    c, d = power >> half, power & low_half
    ad, bd = a * d, b * d
    middle = (bd >> half) + (ad & low_half) + b * c
    quotient = a * c + (ad >> half) + (middle >> half)
    product = (middle << half) | (bd & low_half)
    rest = product + a * powers[4 * decimals + 1]
    if rest < product:
        quotient += np.uint64(1)
    value = float(quotient | np.uint64(1)) * scales[10 * decimals + shifts]  # the last bit: the quotient goes on
    if decimals == 0 or whole == 0 or rest >= np.uint64(_IN_DOUBT):
        value = float(whole) / scales[10 * decimals + _SHIFTS]
        if float(whole) > scales[10 * decimals + _SHIFTS + 1]:
            value = -1.0
    return value


@kernel
def read_number(text: Text, place: int, powers: Unsigned, scales: Array) -> tuple[int, float]:
    """Read a number below 10; return the place after it, or −1 where it has to be read otherwise, and the number."""
    is_negative = byte_at(text, place) == _MINUS
    if is_negative:
        place += 1
    whole: Any = byte_at(text, place) - _ZERO
    decimals, is_read = 0, 0 <= whole <= 9
    place += 1
    if is_read and byte_at(text, place) == _DOT:
        place += 1
        word = word_at(text, place)
        others = find_others(word)
        while others == 0 and decimals < 16:
            whole, decimals, place = whole * 100_000_000 + read_digits(word, 8), decimals + 8, place + 8
            word = word_at(text, place)
            others = find_others(word)
        count = count_before(others)
        is_read = others != 0 and decimals + count > 0 and whole <= np.int64(powers[4 * count + 3])
        whole = whole * np.int64(powers[4 * count + 2]) + read_digits(word, count)
        decimals, place = decimals + count, place + count
    if is_read and (byte_at(text, place) | _LOWER) == _E:
        place, exponent = read_exponent(text, place + 1)
        decimals -= exponent
        is_read = place >= 0
    elif whole == 0 and decimals == 0:
        is_negative = False  # −0 is an integer, which has no sign; −0.0 is a double
    if not (is_read and 0 <= decimals <= _MOST_DECIMALS):
        return -1, 0.0
    value = to_double(whole, decimals, powers, scales)
    if value < 0.0:
        return -1, 0.0
    return place, -value if is_negative else value


@kernel_noinline
def read_exponent(text: Text, place: int) -> tuple[int, int]:
    """Read an exponent of at most two digits; return the place after it, or −1, and the exponent."""
    is_negative = byte_at(text, place) == _MINUS
    if is_negative or byte_at(text, place) == _PLUS:
        place += 1
    begin, exponent = place, 0
    while place < begin + 3 and _ZERO <= byte_at(text, place) <= _NINE:
        exponent = exponent * 10 + byte_at(text, place) - _ZERO
        place += 1
    if place == begin or place == begin + 3:
        return -1, 0
    return place, -exponent if is_negative else exponent
