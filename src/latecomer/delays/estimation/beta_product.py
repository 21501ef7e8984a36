"""Quantiles of products of independent Beta variables, by a contour integral; deterministic, no draws.

With X = −log Π, log φ(s) = log E e^{−sX} is a sum over factors: one table of nodes s serves every product of a chain.
Laplace's inversion along the two rays s = e^{u ± iθ}, π/2 < θ < 3π/4, which the poles of φ (negative numbers) do not
touch, is

    P(X <= x) = θ/π + (1/π)·∫ Im[φ(s)·e^{sx}] du,    s = e^{u + iθ}.

In u the integrand is smooth on every scale of X, and the trapezoid rule converges exponentially: with steps of 0.2 the
probability is off by at most 3e-5; not so far to the left of X's mass, where e^{sx} turns fast, and which Chernoff's
bound, P(X <= x) <= φ(s)·e^{sx} for real s > 0, excludes. A search begins at the quantile of the Beta variable of the
same mean and variance, which is exact where the product is one, and moves only where the probability is off by more
than 1e-4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from latecomer.delays.distribution import Floats

_ANGLE, _STEP = 0.575 * math.pi, 0.2
_FIRST, _LAST_BY_X, _LAST_BY_DEVIATION = 2e-3, 60.0, 7.0
"""Nodes begin at the first over the deviation of X, where Im is linear in s; they end at the second over x, or at the
third over the deviation of the narrowest factor where that is larger: beyond, φ·e^{sx} is nothing in any case."""
_EVERY = 8  # one real node, for Chernoff's bound, to so many
_NOTHING = -14.0  # the logarithm of what does not count
_TOLERANCE, _MOST_STEPS = 1e-4, 60
_SMALLEST, _LARGEST = 1e-17, 600.0
"""X is looked for between these."""
_ROWS = 2048
"""Products that are worked on at a time."""

Indices = npt.NDArray[np.intp]
Complexes = npt.NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class BetaChain:
    """Products Π_k of the factors after the k-th, each a Beta variable of its own."""

    a: Floats
    """The first parameter of each factor."""
    b: Floats
    """The second parameter; a factor where it is 0 is 1."""

    def quantiles(self, mixtures: "Sequence[Mixture]", rows: Indices) -> list[Floats]:
        """Compute a quantile of each mixture for ascending rows, all with a factor after them that is not 1."""
        searches = [_Search(mixture, *self._match_moments(mixture, rows)) for mixture in mixtures]
        first = min(search.first.min() for search in searches)
        narrow = np.sqrt(self._log_ratios[self.b > 0.0].min())
        last = max(_LAST_BY_DEVIATION / narrow, *(_LAST_BY_X / search.x.min() for search in searches))
        nodes = np.exp(np.arange(first, math.log(last) + _STEP, _STEP) + 1j * _ANGLE)
        nodes = np.concatenate([nodes, np.abs(nodes[::_EVERY])])
        after, stop = np.zeros(len(nodes), np.complex128), len(self.a)
        for end in range(len(rows), 0, -_ROWS):
            block = slice(max(0, end - _ROWS), end)
            log_phi, after = self._sum_after(rows[block], nodes, after=after, stop=stop)
            stop = int(rows[block.start]) + 1
            for search in searches:
                search.run(block, log_phi, nodes)
        return [np.asarray(np.exp(-search.x)) for search in searches]

    @cached_property
    def _log_ratios(self) -> Floats:
        """log(E P²/(E P)²) of each factor, about the variance of −log P."""
        return np.log1p(self.b / (self.a * (self.a + self.b + 1.0)))

    def _match_moments(self, mixture: "Mixture", rows: Indices) -> tuple[Floats, Floats]:
        """Return the quantile of X for the Beta variable of the same mean and variance, and about X's deviation."""
        a, b, share, extra = self.a, self.b, mixture.share, mixture.extra
        log_mean = sum_after(np.log1p(-b / (a + b)))[rows] + np.log1p(-share / (extra + 1.0))
        spread = 2.0 * share / ((extra + 1.0) * (extra + 2.0)) - (share / (extra + 1.0)) ** 2
        log_ratio = sum_after(self._log_ratios)[rows] + np.log1p(spread / (1.0 - share / (extra + 1.0)) ** 2)
        mean, variance = np.exp(np.maximum(log_mean, -_LARGEST)), np.expm1(np.minimum(log_ratio, _LARGEST))
        weight = np.maximum((-np.expm1(log_mean) - mean * variance) / (mean * variance), 1e-300)
        from scipy.special import betaincinv  # noqa: PLC0415 - SciPy is loaded where it is used

        guess = betaincinv(mean * weight, -np.expm1(log_mean) * weight, mixture.probability)
        x = -np.log(np.clip(guess, math.exp(-_LARGEST), 1.0))
        return np.clip(x, _SMALLEST, _LARGEST), np.sqrt(log_ratio)

    def _sum_after(
        self, rows: Indices, nodes: Complexes, *, after: Complexes, stop: int
    ) -> tuple[Complexes, Complexes]:
        """Return log φ at the nodes for each row, and for all factors after the first row; `after` has those beyond."""
        factors = np.flatnonzero(self.b[rows[0] + 1 : stop] > 0.0) + rows[0] + 1
        a, b = self.a[factors], self.b[factors]
        from scipy.special import loggamma  # noqa: PLC0415 - SciPy is loaded where it is used

        # a factor often begins where another ends, a_j = a_i + b_i: each value is worked out once
        values, place = np.unique(np.concatenate([a, a + b]), return_inverse=True)
        logs = loggamma(values[:, None] + nodes) - loggamma(values)[:, None]
        terms = logs[place[: len(a)]] - logs[place[len(a) :]]
        sums = np.concatenate([terms, after[None]])[::-1].cumsum(axis=0)[::-1]
        return sums[np.searchsorted(factors, rows, side="right")], sums[0]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Π_k with probability 1 − `share`, and Π_k·U^{1/extra}, U uniform, with probability `share`; a value a row."""

    probability: Floats
    """Of which the quantile is asked."""
    share: Floats
    extra: Floats


class _Search:
    """The search for the quantiles of a mixture, each row at nodes of its own scale."""

    def __init__(self, mixture: Mixture, guess: Floats, deviation: Floats) -> None:
        self.x, self._mixture = guess, mixture
        self.first = np.log(_FIRST / deviation)

    def run(self, block: slice, log_phi: Complexes, nodes: Complexes) -> None:
        """Find x for a block of rows, with log φ of Π_k at all nodes."""
        share, extra = self._mixture.share[block, None], self._mixture.extra[block, None]
        probability, is_real = self._mixture.probability[block], nodes.imag == 0.0
        real, nodes = nodes[is_real].real, nodes[~is_real]
        logs = log_phi[:, is_real].real + np.log(1.0 - share * real / (extra + real))
        least = np.maximum(((np.log1p(-probability)[:, None] - logs) / real).max(axis=1), _SMALLEST)
        x = np.maximum(self.x[block], least)
        starts = ((self.first[block] - math.log(abs(nodes[0]))) / _STEP).astype(np.intp)
        # the first guess of x may be too large, and the integrand then larger than it says
        counts = log_phi[:, ~is_real].real + nodes.real * (x[:, None] / 4.0) > _NOTHING
        stops = len(nodes) - np.argmax(counts[:, ::-1], axis=1)
        width = min(len(nodes), int((stops - starts).max()) + 1)
        columns = np.minimum(starts, len(nodes) - width)[:, None] + np.arange(width)
        s = nodes[columns]
        logs = np.take_along_axis(log_phi, columns, 1) + np.log(1.0 - share * s / (extra + s))
        self.x[block] = _Inversion(logs, s).search(probability, guess=x, least=least)


class _Inversion:
    """P(X >= x) and its slope for rows of log φ, each at its own nodes."""

    def __init__(self, log_phi: Complexes, nodes: Complexes) -> None:
        self._size, self._phase = log_phi.real.copy(), log_phi.imag.copy()
        self._real, self._imag = nodes.real.copy(), nodes.imag.copy()
        weights = np.full(log_phi.shape[1], _STEP / math.pi)
        weights[0] /= -math.expm1(-_STEP)  # below the first node the integrand is linear in s: a geometric series
        self._weights = weights

    def search(self, probability: Floats, *, guess: Floats, least: Floats) -> Floats:
        """Find where P(X >= x) is the probability: Newton's steps, halving where one leaves what is known."""
        x, todo = guess.copy(), np.arange(len(guess))
        low, high = least.copy(), np.full(len(x), _LARGEST)
        for _ in range(_MOST_STEPS):
            reached, density = self._evaluate(x[todo], todo)
            excess = reached - probability[todo]
            off = np.abs(excess) > _TOLERANCE
            todo, excess, density = todo[off], excess[off], density[off]
            if not len(todo):
                break
            low[todo] = np.where(excess > 0.0, x[todo], low[todo])
            high[todo] = np.where(excess > 0.0, high[todo], x[todo])
            newton = x[todo] + excess / np.maximum(density, 1e-12)
            inside = (low[todo] < newton) & (newton < high[todo])
            x[todo] = np.where(inside, newton, np.sqrt(low[todo] * high[todo]))
        return x

    def _evaluate(self, x: Floats, rows: Indices) -> tuple[Floats, Floats]:
        every = slice(None) if len(rows) == len(self._size) else rows
        size = np.exp(self._size[every] + self._real[every] * x[:, None])
        turn = self._phase[every] + self._imag[every] * x[:, None]
        sine, cosine = size * np.sin(turn), size * np.cos(turn)
        density = (self._real[every] * sine + self._imag[every] * cosine) @ self._weights
        return 1.0 - _ANGLE / math.pi - sine @ self._weights, density


def sum_after(terms: Floats) -> Floats:
    """Sum the terms after each one; 0 after the last."""
    return np.asarray(np.append(terms[:0:-1].cumsum()[::-1], 0.0))
