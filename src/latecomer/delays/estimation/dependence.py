"""Tests whether delays depend on something, from conversions alone: the log-rank test in reversed time.

A delay D is seen where D <= R, the age up to which its decision was watched. At each delay j the conversions at risk
are those with D <= j <= R. If the delay law is the same for all, those with D = j are a random sample of them:

    U = Σ_j [Σ_{D_i = j} x_i − d_j x̄_j],    Σ = Σ_j d_j (n_j − d_j)/(n_j − 1)·C_j,

with n_j at risk, d_j of them at j, and x̄_j and C_j (divisor n_j) the mean and the covariance of x at risk. UᵀΣ⁺U is
then about χ² with as many degrees as Σ has rank, also where a policy chose the actions by what it had seen.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latecomer.delays.distribution import Floats
from latecomer.errors import InputError

REJECTED_BELOW, ENOUGH_CONVERSIONS = 0.01, 100
"""Delays are said to differ where p is below the one, with at least the other."""
_SMALLEST_LEVEL, _MOST_LEVELS = 5, 100
OTHER = "other"
"""The level that rare ones are counted as."""


@dataclass(frozen=True, eq=False)
class DependenceTest:
    """The result of a test whether delays depend on x."""

    statistic: float
    """UᵀΣ⁺U."""
    p_value: float
    """The chance of a larger statistic where delays do not depend on x; 1 where x does not vary."""
    degrees: int
    """The rank of Σ: degrees of freedom."""
    effect: Floats
    """Σ⁺U, to first order the logarithm of the reverse hazard's ratio for one more of each column; above 0 is later."""
    names: tuple[str, ...]
    """The columns of x: of categories their levels, of numbers "x0", "x1", …"""
    conversions: int
    """The number of delays."""

    @property
    def rejects(self) -> bool:
        """True where p < 0.01 with at least 100 conversions: the rule by which the evaluation warns."""
        return self.p_value < REJECTED_BELOW and self.conversions >= ENOUGH_CONVERSIONS


def test_dependence(delays: npt.ArrayLike, limits: npt.ArrayLike, x: npt.ArrayLike) -> DependenceTest:
    """Test whether delays depend on x, such as the action or the time of the decision; O(n log n + n·p²).

    Parameters
    ----------
    delays
        D, the delay of each conversion that was seen.
    limits
        R, up to which delay that conversion would have been seen: its decision's age when watching ended, or the window
        where that is less. No delay is above its limit.
    x
        Categories (texts or booleans; of each level an indicator, those with fewer than 5 conversions together as
        "other"); or numbers, one column or several; or times of decisions (numpy.datetime64, or numbers), which tests
        for drift.

    Examples
    --------
    >>> import numpy as np
    >>> from latecomer import delays
    >>> rng = np.random.default_rng(0)
    >>> page = np.repeat(["short", "long"], 500)
    >>> late = rng.exponential(np.where(page == "long", 3.0, 1.0))
    >>> age = rng.uniform(0.0, 10.0, 1000)
    >>> seen = late <= age
    >>> found = delays.test_dependence(late[seen], age[seen], page[seen])
    >>> found.rejects, found.degrees, found.names, found.effect.round(1)
    (True, 1, ('long', 'short'), array([ 0.2, -0.2]))
    """
    came, watched = _check_times(delays, limits)
    columns, names, scale = _make_columns(x, len(came))
    if not len(came):
        return DependenceTest(0.0, 1.0, 0, np.zeros(len(names)), names, 0)
    score, variance = _score((columns - columns.mean(axis=0)) / scale, came, watched)
    inverse, rank = _pseudo_inverse(variance)
    statistic = float(score @ inverse @ score)
    from scipy.special import chdtrc  # noqa: PLC0415 - SciPy is loaded where it is used

    p_value = float(chdtrc(rank, statistic)) if rank else 1.0
    return DependenceTest(statistic, p_value, rank, inverse @ score / scale, names, len(came))


test_dependence.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def _score(columns: Floats, came: Floats, watched: Floats) -> tuple[Floats, Floats]:
    """Compute U and Σ; sums over risk sets are differences of sums over rows in the order of D, and of R."""
    by_delay, by_limit = np.argsort(came, kind="stable"), np.argsort(watched, kind="stable")
    times, first = np.unique(came[by_delay], return_index=True)
    events = np.diff(np.append(first, len(came)))
    gone = np.searchsorted(watched[by_limit], times, side="left")  # R < j
    at_risk = first + events - gone
    sums = _sum_before(columns[by_delay], first + events) - _sum_before(columns[by_limit], gone)
    means = sums / at_risk[:, None]
    score = columns.sum(axis=0) - events @ means
    weights = events * (at_risk - events) / np.maximum(at_risk - 1, 1)
    # Σ_j w_j/n_j Σ_{i at risk} x_i x_iᵀ: a row has all w_j/n_j of the times from its D to its R
    upto = np.concatenate([[0.0], np.cumsum(weights / at_risk)])
    held = upto[np.searchsorted(times, watched, side="right")] - upto[np.searchsorted(times, came, side="left")]
    variance = (columns * held[:, None]).T @ columns - (means * weights[:, None]).T @ means
    return score, variance


def _sum_before(rows: Floats, stops: npt.NDArray[np.int64]) -> Floats:
    """Sum the rows before each stop."""
    upto = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    return np.asarray(upto[stops])


def _pseudo_inverse(variance: Floats) -> tuple[Floats, int]:
    values, vectors = np.linalg.eigh((variance + variance.T) / 2.0)
    kept = values > max(values.max(initial=0.0) * len(values) * 1e-10, 1e-12)
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T, int(kept.sum())


def _check_times(delays: npt.ArrayLike, limits: npt.ArrayLike) -> tuple[Floats, Floats]:
    came, watched = np.asarray(delays, np.float64), np.asarray(limits, np.float64)
    if came.ndim != 1 or came.shape != watched.shape:
        raise InputError(
            f"delays and limits must be lists of one length; got shapes {came.shape} and {watched.shape}",
            field="limits",
        )
    wrong = ~((came >= 0.0) & (came <= watched) & np.isfinite(watched))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            "every delay must be at least 0 and at most its limit, and finite, for a later one is not seen; "
            f"got delay {came[row]:g} with limit {watched[row]:g} in row {row}: leave out what is not seen yet",
            field="delays",
        )
    return came, watched


def _make_columns(x: npt.ArrayLike, rows: int) -> tuple[Floats, tuple[str, ...], Floats]:
    """Return the columns, their names, and the scale that each is divided by: of numbers the deviation."""
    given = np.asarray(x)
    if given.ndim not in (1, 2) or len(given) != rows:
        raise InputError(f"x must have a row for each of the {rows} delays; got shape {given.shape}", field="x")
    if given.dtype.kind not in "iufM":
        if given.ndim == 2:
            raise InputError("x must be one column where it is categories; test the columns one by one", field="x")
        columns, names = _make_indicators(given.astype(str))
        return columns, names, np.ones(len(names))
    numbers = given.astype("datetime64[us]").astype(np.float64) if given.dtype.kind == "M" else given
    columns = numbers.astype(np.float64).reshape(rows, given.shape[1] if given.ndim == 2 else 1)
    if not np.isfinite(columns).all():
        raise InputError("x must be finite; got NaN or infinity: leave out those rows", field="x")
    deviation = columns.std(axis=0) if rows else np.ones(columns.shape[1])
    return columns, tuple(f"x{i}" for i in range(columns.shape[1])), np.where(deviation > 0.0, deviation, 1.0)


def _make_indicators(given: npt.NDArray[np.str_]) -> tuple[Floats, tuple[str, ...]]:
    """Return an indicator for each level, the rare ones together."""
    levels, place, counts = np.unique(given, return_inverse=True, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:_MOST_LEVELS])
    kept = kept[counts[kept] >= _SMALLEST_LEVEL]
    indicators = (place[:, None] == kept).astype(np.float64)
    names = tuple(levels[kept].tolist())
    if len(kept) == len(levels):
        return indicators, names
    return np.column_stack([indicators, 1.0 - indicators.sum(axis=1)]), (*names, OTHER)
