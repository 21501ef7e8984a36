"""The delay curve from counted delays, late ones of which had no time to be seen (Lynden-Bell, with a prior).

A conversion is known only once it has come, so its delay D is right-truncated: D <= R, the age of its decision. Cut
into bins, let d_j count the delays in bin j, and n_j those up to bin j whose R reaches bin j. The reverse hazard
q_j = P(D in bin j | D up to bin j) needs no knowledge of what is missing, and

    F_M(k) = P(D up to bin k | D up to bin M) = Π_{j=k+1}^{M} (1 − q_j).

The likelihood factorises over j, so independent Beta priors of mean width_j/end_j (a uniform delay) and weight c give
independent Beta posteriors. Without a prior, one thin n_j at the top would zero everything below it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from latecomer.delays.distribution import Delays, Floats
from latecomer.errors import NotIdentifiableError
from latecomer.validation import check_integer, check_probability

_BLOCK = 1 << 20  # Beta draws held at a time


@dataclass(frozen=True, eq=False)
class DelayCurve:
    """F_M at the end of every bin: the share of the conversions within M that come at least as soon.

    Parameters
    ----------
    ends
        Where each bin ends, ascending; the first begins at 0.
    events
        d_j, the delays in each bin.
    at_risk
        n_j, the delays up to the bin, of conversions whose decision was watched to the end of the bin.
    prior
        c, the weight of the prior on each reverse hazard, in conversions.

    Examples
    --------
    >>> import numpy as np
    >>> from latecomer.delays.estimation.curve import DelayCurve
    >>> curve = DelayCurve(ends=np.array([1.0, 2.0, 3.0]), events=np.array([5, 3, 2]), at_risk=np.array([5, 8, 10]))
    >>> curve.cdf.round(3)  # nothing was truncated: 0.5, 0.8, 1 but for the prior
    array([0.481, 0.788, 1.   ])
    >>> low, high = curve.credible_band(0.9)
    >>> bool((low <= curve.cdf).all() and (curve.cdf <= high).all())
    True
    """

    ends: Floats
    events: Delays
    at_risk: Delays
    prior: float = 1.0

    @cached_property
    def _posterior(self) -> tuple[Floats, Floats]:
        """The two parameters of each q_j's Beta; the first bin's is 1, and is not used."""
        mean = np.diff(self.ends, prepend=0.0) / self.ends
        return self.prior * mean + self.events, self.prior * (1.0 - mean) + self.at_risk - self.events

    @cached_property
    def cdf(self) -> Floats:
        """The posterior mean of F_M, exact: the mean of a product of independent factors."""
        a, b = self._posterior
        return _multiply_from_the_end((b / (a + b))[None, 1:], np.ones(1)).ravel()

    def credible_band(self, level: float = 0.9, *, draws: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
        """The posterior's central quantiles of F_M, bin by bin, from independent draws; the same seed, the same band.

        At each age the truth is inside with about the probability `level`, less where under five conversions come
        later; that it is inside at all ages at once is less likely. The mean is always inside.
        """
        tail = (1.0 - check_probability("level", level)) / 2.0
        rng = np.random.default_rng(seed)
        a, b = self._posterior
        low, high = np.ones(len(a)), np.ones(len(a))
        above = np.ones(check_integer("draws", draws, least=1))
        step = max(1, _BLOCK // draws)
        for stop in range(len(a), 1, -step):  # from the last bin down, as the product runs
            bins = slice(max(1, stop - step), stop)
            shares = _multiply_from_the_end(rng.beta(b[bins], a[bins], (draws, len(a[bins]))), above)[:, :-1]
            above = shares[:, 0]
            low[bins.start - 1 : stop - 1], high[bins.start - 1 : stop - 1] = np.quantile(
                shares, [tail, 1.0 - tail], axis=0
            )
        return np.minimum(low, self.cdf), np.maximum(high, self.cdf)

    @property
    def conversions(self) -> int:
        """The number of delays that were counted."""
        return int(self.events.sum())

    def tau(self) -> NoReturn:
        """Raise `NotIdentifiableError`: τ_m does not follow from conversions alone."""
        raise NotIdentifiableError(
            "τ_m, the share of all conversions that come within the window, is not identifiable from conversions: "
            "those that come later, or never, leave no trace. F_m(age), the share of those within the window that "
            "have come by an age, is: ask for cdf or maturity, and rank by them"
        )


def _multiply_from_the_end(kept: Floats, above: Floats) -> Floats:
    """Compute Π_{j>k} kept_j · above for every k and row, from no factor (the last k) to all of them (the first)."""
    rows = np.concatenate([kept, above[:, None]], axis=1)
    return np.asarray(np.cumprod(rows[:, ::-1], axis=1)[:, ::-1])
