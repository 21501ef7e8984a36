"""An interval for the mean of outcomes so far, valid at every look and while the mean moves.

Outcomes Z_s in [0, 1] have conditional means μ_s, which may change: a policy learns. For every tilt λ,
E e^{λZ} ≤ 1 + (e^λ − 1)μ by convexity, and Σ ln(1 + (e^λ − 1)μ_s) ≤ n ln(1 + (e^λ − 1)μ̄) by concavity, with
μ̄ = Σ μ_s / n. So

    M_n(v) = mean over λ of exp(λ Σ Z − n ln(1 + (e^λ − 1)v))

at v = μ̄_n is at most a martingale that begins at 1, and exceeds 2/α at any time with probability at most α/2 (Ville).
It is a bet against v at fixed tilts, half of the capital for λ > 0 and half for λ < 0. The values that neither side
refutes are the interval. It needs the number of outcomes and their sum, nothing else. The proof step by step, as a
second reader checked it, and what it does not say: docs/explanation/theory/running-mean.md. `evaluation.betting` is for
rounds with weights, and for a mean that does not move.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.validation import check_probability

_TILTS: Floats = np.array([4.0 * 2.0 ** (-0.5 * j) for j in range(32)])
"""Tilts from 4 to 9·10⁻⁵: right for ten rounds, and for 10⁹."""
_HALVINGS = 40


@lru_cache(maxsize=256)
def bound_running_mean(count: int, total: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval for the mean of `count` outcomes in [0, 1] that sum to `total`.

    Examples
    --------
    >>> low, high = bound_running_mean(10_000, 300)
    >>> low < 0.03 < high, round(high - low, 3)
    (True, 0.012)
    """
    alpha = 1.0 - check_probability("confidence", confidence, usual=0.95)
    if not 0.0 <= total <= count:
        raise InputError(f"total must be between 0 and count, {count}; got {total!r}", field="total")
    if count == 0:
        return 0.0, 1.0
    threshold, mean = math.log(2.0 / alpha), total / count
    low, high = 0.0, 1.0
    if _log_capital(_TILTS, count, total, 0.0) > threshold:
        low = _find_edge(_TILTS, count, total, threshold, inside=mean, outside=0.0)
    if _log_capital(-_TILTS, count, total, 1.0) > threshold:
        high = _find_edge(-_TILTS, count, total, threshold, inside=mean, outside=1.0)
    return low, high


def find_refuted(counts: Floats, totals: Floats, values: Floats, *, confidence: float = 0.95) -> npt.NDArray[np.bool_]:
    """Tell, for many means at once, which values lie outside their intervals.

    >>> find_refuted(np.array([10_000, 10_000]), np.array([300, 300]), np.array([0.03, 0.04])).tolist()
    [False, True]
    """
    threshold = math.log(2.0 / (1.0 - check_probability("confidence", confidence, usual=0.95)))
    refuted = np.zeros(len(counts), np.bool_)
    for tilts in (_TILTS, -_TILTS):
        logs = tilts * totals[:, None] - counts[:, None] * np.log1p(np.expm1(tilts) * values[:, None])
        refuted |= np.logaddexp.reduce(logs, axis=1) - math.log(len(tilts)) > threshold
    return refuted


def _log_capital(tilts: Floats, count: int, total: float, value: float) -> float:
    """Return ln M_n(v) over the tilts of one side."""
    logs = tilts * total - count * np.log1p(np.expm1(tilts) * value)
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).mean()))


def _find_edge(tilts: Floats, count: int, total: float, threshold: float, *, inside: float, outside: float) -> float:
    """Return the value between a refuted one and one that is not, from which on values are refuted."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        if _log_capital(tilts, count, total, middle) > threshold:
            outside = middle
        else:
            inside = middle
    return outside
