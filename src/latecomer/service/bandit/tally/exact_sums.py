"""Sums of values that are exact, and so do not depend on their order: whole numbers of 2⁻⁹⁶, in parts of 32 bits.

A value in [0, 1] is v = p₀/2³² + p₁/2⁶⁴ + p₂/2⁹⁶, its parts below 2³² but for that of 1. Each part is added up by
itself, in 64 bits, which is enough for 2³¹ values; the sum of all three is rounded once, where it is read. Of a value
of at least 2⁻⁴³ nothing is lost; a smaller one is off by 2⁻⁹⁷ at most.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array, Integers

PARTS = 3
_PART = 2.0**32
_UNIT = 1 << 32 * PARTS


def split_values(values: Array) -> Integers:
    """Return the parts of each value, a row each.

    >>> split_values(np.array([0.5, 1.0, 2.0**-40])).tolist()
    [[2147483648, 0, 0], [4294967296, 0, 0], [0, 16777216, 0]]
    """
    parts = np.empty((len(values), PARTS), np.int64)
    rest = values * _PART
    for part in range(PARTS - 1):
        whole = np.floor(rest)
        parts[:, part] = whole
        rest = (rest - whole) * _PART
    parts[:, PARTS - 1] = np.rint(rest)
    return parts


def join_parts(parts: Sequence[int] | npt.NDArray[Any]) -> float:
    """Return the sum that added parts stand for, rounded once.

    >>> join_parts(split_values(np.full(10, 0.1)).sum(axis=0))
    1.0
    """
    total = 0
    for part in parts:
        total = (total << 32) + int(part)
    return total / _UNIT
