"""Signed hashing of terms into columns; the same term has the same columns for ever.

A term's number h is BLAKE2b of its bytes (8 bytes, little-endian): `c` (context) or `a` (action), the name in UTF-8,
and for a text a NUL and the text. A product's number is what SplitMix64's finaliser makes of h_1 + 0x9E3779B97F4A7C15 *
h_2 modulo 2^64, the context's term first. A term stands in two of the m columns for hashed terms, with its weight over
sqrt(2) in each: i = (h >> 2) mod 2^31 mod m and j = (i + 1 + (h >> 33) mod (m - 1)) mod m; it is negative in the first
where h is odd, in the second where h >> 1 is.
"""

import math
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array, Integers

Numbers = npt.NDArray[np.uint64]

MIN_COLUMNS = 2
"""Columns that hashing needs, since a term stands in two."""
HALF = math.sqrt(0.5)
"""The weight of a term in each of its two columns."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LOW_31 = np.uint64((1 << 31) - 1)
_SHIFTS = tuple(np.uint64(bits) for bits in range(64))
_SIGNS = np.array([1.0, -1.0])


def hash_term(side: bytes, name: str, text: str | None = None) -> int:
    """Return the number of a term: of a number's name, or of a name with a text."""
    term = side + name.encode() + (b"" if text is None else b"\x00" + text.encode())
    return int.from_bytes(blake2b(term, digest_size=8).digest(), "little")


def join_numbers(first: Numbers, second: Numbers) -> Numbers:
    """Return the numbers of products."""
    numbers = first + _GOLDEN * second
    numbers ^= numbers >> _SHIFTS[30]
    numbers *= _FIRST
    numbers ^= numbers >> _SHIFTS[27]
    numbers *= _SECOND
    numbers ^= numbers >> _SHIFTS[31]
    return numbers


def place_terms(numbers: Numbers, count: int) -> tuple[Integers, Integers]:
    """Return the two columns of each term, of `count` columns from 0 on."""
    first = ((numbers >> _SHIFTS[2]) & _LOW_31).astype(np.uint32) % np.uint32(count)
    second = (numbers >> _SHIFTS[33]).astype(np.uint32) % np.uint32(count - 1)
    second += first
    second += np.uint32(1)
    second -= np.uint32(count) * (second >= np.uint32(count))
    return first.astype(np.int64), second.astype(np.int64)


def sign_terms(numbers: Numbers) -> tuple[Array, Array]:
    """Return the sign of each term in either column."""
    bits = (numbers & _SHIFTS[3]).astype(np.int64)
    return _SIGNS[bits & 1], _SIGNS[bits >> 1]
