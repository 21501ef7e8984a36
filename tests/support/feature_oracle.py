"""Features into a row, straight from the description, one term at a time."""

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

MODULUS = 1 << 64


def slow_row(
    context: Mapping[str, Any], action: Mapping[str, Any], dim: int, scales: Mapping[str, Any] | None = None
) -> list[float]:
    """The row of one action; values are plain, numbers are floats."""
    around, own = slow_terms("c", context, scales or {}), slow_terms("a", action, scales or {})
    row = [1.0] + [0.0] * (dim - 1)
    pairs = [(mix((c + 0x9E3779B97F4A7C15 * a) % MODULUS), w * v) for c, w in around for a, v in own]
    for number, weight in [*around, *own, *pairs]:
        others = dim - 1
        first = ((number >> 2) % 2**31) % others
        second = (first + 1 + (number >> 33) % (others - 1)) % others
        row[1 + first] += weight / math.sqrt(2) * (-1 if number % 2 else 1)
        row[1 + second] += weight / math.sqrt(2) * (-1 if number // 2 % 2 else 1)
    divisor = max(math.sqrt((1 + len(context)) * (1 + len(action))), math.hypot(*row))
    return [entry / divisor for entry in row]


def slow_terms(side: str, features: Mapping[str, Any], scales: Mapping[str, Any]) -> list[tuple[int, float]]:
    """The number and the weight of each term."""
    found = []
    for name, value in features.items():
        if type(value) is float:
            scale = scales.get(name)
            weight = value if scale is None else (value - scale.center) / scale.scale
            found.append((number_of(side + name), min(1.0, max(-1.0, weight))))
        elif value is not None:
            texts = {str(value).lower()} if type(value) is bool else {value} if type(value) is str else set(value)
            found += [(number_of(f"{side}{name}\0{text}"), 1 / math.sqrt(len(texts))) for text in texts]
    return found


def number_of(term: str) -> int:
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little")


def mix(number: int) -> int:
    """SplitMix64's finaliser, as it was published."""
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % MODULUS
    number = (number ^ number >> 27) * 0x94D049BB133111EB % MODULUS
    return number ^ number >> 31
