"""Names and values into R^d: signed hashing, stable for ever, for those who have features and no vectors.

A feature becomes a term with a weight: a number x under `price` is the term `price` with weight x; a text `red` under
`colour` the term `colour=red` with weight 1, and so is each text of a list; a truth value is the text `true` or
`false`; null is nothing. An action's vector has its own terms, the context's, and the product of each with each:
without the products a context would move all actions alike, and change no choice.

A term's bytes are hashed with BLAKE2b (8 bytes, read as a little-endian number h): its column is (h >> 1) mod d, its
sign minus where h is odd. Its bytes are `c` (context) or `a` (action), the name in UTF-8, and for a text a NUL and the
value; a product's are the context's term, a byte 1, and the action's. The vector is divided by its norm.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from latecomer.arguments import shown
from latecomer.core.state import Array
from latecomer.errors import InputError

Value = float | int | bool | str | None | Sequence[str]
Term = tuple[bytes, float]


def hashed(context: Mapping[str, Value], actions: Sequence[Mapping[str, Value]], dim: int) -> Array:
    """One row of norm 1 for each action; zeros where there is no feature at all.

    Parameters
    ----------
    context
        What holds for every action of this decision.
    actions
        What holds for each.
    dim
        d, the bandit's.

    Examples
    --------
    >>> hashed({"hour": "noon"}, [{"colour": "red"}, {"colour": "blue", "price": 0.5}], dim=4).shape
    (2, 4)
    """
    around = sorted(_terms(b"c", context, "context"))
    rows = np.zeros((len(actions), dim))
    for position, features in enumerate(actions):
        own = sorted(_terms(b"a", features, f"action {position}"))
        joined = [(c + b"\x01" + a, weight * other) for c, weight in around for a, other in own]
        for term, weight in (*around, *own, *joined):
            column, sign = _place(term, dim)
            rows[position, column] += sign * weight
    return _normalised(rows)


def _terms(side: bytes, features: Mapping[str, Value], where: str) -> Iterator[Term]:
    for name, value in features.items():
        stem = side + _utf8(name, where)
        for text in _texts(value):
            yield stem + b"\x00" + _utf8(text, where), 1.0
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield stem, _weight(name, value, where)


def _texts(value: Value) -> Sequence[str]:
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, str):
        return (value,)
    if value is None or isinstance(value, int | float):
        return ()
    return value if isinstance(value, list | tuple) else (value,)  # what is no text is refused as one


def _utf8(text: object, where: str) -> bytes:
    if not isinstance(text, str):
        raise InputError(
            f"{where} must have texts as names, and numbers, texts or lists of texts as values; got {shown(text)}"
        )
    return text.encode("utf-8", "surrogatepass")


def _weight(name: str, value: float, where: str) -> float:
    try:
        weight = float(value)
    except OverflowError:
        weight = math.inf
    if not abs(weight) <= 1e100:
        raise InputError(f"{where}: {shown(name)} must be a number of at most 1e100 in size; got {str(value)[:40]}")
    return weight


@lru_cache(maxsize=65_536)
def _place(term: bytes, dim: int) -> tuple[int, float]:
    number = int.from_bytes(hashlib.blake2b(term, digest_size=8).digest(), "little")
    return (number >> 1) % dim, -1.0 if number & 1 else 1.0


def _normalised(rows: Array) -> Array:
    """Each row over its norm; first over its largest entry, so that no square overflows or vanishes."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(largest > 0.0, largest, 1.0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Array = rows / np.where(norms > 0.0, norms, 1.0)
    return scaled
