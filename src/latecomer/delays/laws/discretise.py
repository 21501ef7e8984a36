"""A continuous delay X, measured in rounds, arrives in the round that it falls in: D = ⌊X⌋."""

from collections.abc import Callable

import numpy as np

from latecomer.delays.distribution import NEVER, Delays, Floats

EXACT_TERMS = 100_000
"""Terms of a sum that are added one by one, before a formula takes the rest."""


def discretise(x: Floats) -> Delays:
    """Return ⌊X⌋ of X >= 0, and `NEVER` where it does not fit."""
    return np.minimum(x, NEVER).astype(np.int64)


def mean_of_floor(
    *,
    tail: Callable[[Floats], Floats],
    slope: Callable[[Floats], Floats],
    area: Callable[[float, float], float],
    certain: float,
    last: float,
    terms: int = EXACT_TERMS,
) -> float:
    """Compute E⌊X⌋ = Σ_{k>=1} P(X >= k): term by term, then Euler and Maclaurin's formula.

    The first terms carry all that a narrow law has; past them a law is so wide that the formula's error is below 1e-9.

    Parameters
    ----------
    tail
        P(X >= x).
    slope
        Its derivative.
    area
        Its integral from one point to another.
    certain
        A whole number up to which the tail is 1.
    last
        The last whole number where the tail is above 0, or infinity.
    terms
        How many terms are added one by one.
    """
    certain = min(certain, last)
    knee = min(certain + terms, last)
    total = certain + float(tail(certain + np.arange(1.0, knee - certain + 1.0)).sum())
    if knee < last:
        ends = np.array([knee, last])
        step = float(np.diff(tail(ends))[0]) / 2.0 + float(np.diff(slope(ends))[0]) / 12.0
        total += area(knee, last) + step
    return total
