"""The delay curve from counted delays, late ones of which had no time to be seen (Lynden-Bell, with a prior).

A conversion is known only once it has come, so its delay D is right-truncated: D <= R, the age of its decision. Cut
into bins, let d_j count the delays in bin j, and n_j those up to bin j whose R reaches bin j. The reverse hazard
q_j = P(D in bin j | D up to bin j) needs no knowledge of what is missing, and

    F_M(k) = P(D up to bin k | D up to bin M) = Π_{j=k+1}^{M} (1 − q_j).

The likelihood factorises over j, so independent Beta priors of mean width_j/end_j (a uniform delay) and weight c give
independent Beta posteriors. Without a prior, one thin n_j at the top would zero everything below it. The curve is the
posterior mean; its bands (`bands.py`) have no prior, and come from the counts alone.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from latecomer.delays.distribution import Delays, Floats
from latecomer.delays.estimation.bands import DEFAULT_BAND, Band, anytime_band, beta_product_band, check_band
from latecomer.errors import InputError, NotIdentifiableError
from latecomer.validation import check_probability


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
    closed
        The delays in each bin of conversions whose decision was watched to the end of the last bin: for the band that
        holds at every look.

    Examples
    --------
    >>> import numpy as np
    >>> from latecomer.delays.estimation.curve import DelayCurve
    >>> curve = DelayCurve(ends=np.array([1.0, 2.0, 3.0]), events=np.array([5, 3, 2]), at_risk=np.array([5, 8, 10]))
    >>> curve.cdf.round(3)  # nothing was truncated: 0.5, 0.8, 1 but for the prior
    array([0.481, 0.788, 1.   ])
    >>> low, high = curve.confidence_band(0.9)
    >>> low.round(2), high.round(2)
    (array([0.25, 0.53, 1.  ]), array([0.75, 0.95, 1.  ]))
    """

    ends: Floats
    events: Delays
    at_risk: Delays
    prior: float = 1.0
    closed: Delays | None = None

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

    @cached_property
    def greenwood(self) -> Floats:
        """q̂_j/((1 − q̂_j)·n_j), the variance that the estimate of bin j's reverse hazard adds to log F; 0 for the first.

        The counts are those of the posterior: the prior adds its weight to n_j.
        """
        a, b = self._posterior
        terms = np.zeros(len(a))
        terms[1:] = a[1:] / (b[1:] * (a[1:] + b[1:]))
        return terms

    def confidence_band(self, level: float = 0.9, *, band: Band = DEFAULT_BAND) -> tuple[Floats, Floats]:
        """Compute the lower and the upper end of a confidence interval of F_M at the end of every bin.

        At each age the truth is inside with the probability `level`; that it is inside at all ages at once is less
        likely. The band comes from the counts alone: where they say little, `cdf`, which has a prior, may be outside.

        Parameters
        ----------
        level
            The confidence, such as 0.9.
        band
            "mid-p", about that confidence; "conservative", at least that, and Clopper and Pearson's interval where
            nothing is truncated; "anytime", at least that at every look, however often one looks, from conversions of
            closed rounds alone.
        """
        level = check_probability("level", level, usual=0.9)
        if (checked := check_band(band)) != "anytime":
            return beta_product_band(self.events, self.at_risk, level=level, band=checked)
        if self.closed is None:
            raise InputError(
                "band must be 'mid-p' or 'conservative' where the curve has no counts of closed rounds; got 'anytime': "
                "give the curve `closed`",
                field="band",
            )
        return anytime_band(self.closed, level=level)

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
