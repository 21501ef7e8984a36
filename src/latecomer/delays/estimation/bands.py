"""Confidence bands of a delay curve, from its counts alone.

**mid-P and conservative**: with d_j delays in bin j and n_j at risk, let P_j ~ Beta(n_j − d_j + 1, d_j), or 1 where
d_j = 0; Π_k = Π_{j>k} P_j; r_k = min_{j>k} (n_j − d_j); E_k = U^{1/r_k} with U uniform, or 0 where r_k = 0. The
conservative band of F(k) has the 1 − α/2 quantile of Π_k as its upper end and the α/2 quantile of Π_k·E_k as its lower
one: Clopper and Pearson's interval where nothing is truncated. The mid-P band has both quantiles from the mixture of
the two, half and half. Its coverage is measured (docs/explanation/delay-estimation.md), not proved.

**anytime**: valid at every look. Of n conversions of closed rounds S have D <= k. The band is all f with

    f^S·(1 − f)^{n−S} > α·B(½ + S, ½ + n − S)/B(½, ½),

by Ville's inequality for the mixture over Jeffreys' prior (Robbins).
"""

from typing import Literal, get_args

import numpy as np

from latecomer.delays.distribution import Delays, Floats
from latecomer.delays.estimation.beta_product import BetaChain, Mixture
from latecomer.errors import InputError

Band = Literal["mid-p", "conservative", "anytime"]
BANDS: tuple[Band, ...] = get_args(Band)
DEFAULT_BAND: Band = "mid-p"
_HALVINGS = 60


def check_band(band: str) -> Band:
    """Return the name of a band, or refuse it."""
    if band not in BANDS:
        raise InputError(f"band must be one of {', '.join(map(repr, BANDS))}; got {band!r:.100}", field="band")
    return band


def beta_product_band(
    events: Delays | Floats, at_risk: Delays | Floats, *, level: float, band: Literal["mid-p", "conservative"] = "mid-p"
) -> tuple[Floats, Floats]:
    """Compute the lower and the upper end of the band at the end of every bin; at the last both are 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import beta
    >>> low, high = beta_product_band(np.array([5, 3, 2]), np.array([5, 8, 10]), level=0.9, band="conservative")
    >>> low.round(4), high.round(4)  # nothing is truncated: 5 of 10, 8 of 10
    (array([0.2224, 0.4931, 1.    ]), array([0.7776, 0.9632, 1.    ]))
    >>> [round(float(beta.ppf(0.05, s, 11 - s)), 4) for s in (5, 8)]
    [0.2224, 0.4931]
    """
    tail = (1.0 - level) / 2.0
    d, n = np.asarray(events, np.float64), np.asarray(at_risk, np.float64)
    left = np.append(np.minimum.accumulate((n - d)[:0:-1])[::-1], np.inf)  # r_k
    later = np.append((d > 0.0)[:0:-1].cumsum()[::-1], 0)  # bins after k that have delays
    shares = (0.5, 0.5) if band == "mid-p" else (1.0, 0.0)
    ends = list(zip((tail, 1.0 - tail), shares, strict=True))
    found = [_quantile_of_extra(left, probability=probability, share=share) for probability, share in ends]
    changed = (np.diff(later, prepend=-1) != 0) | (np.diff(left, prepend=-1.0) != 0.0)
    rows = np.flatnonzero((later > 0) & changed)
    if len(rows):
        every = np.flatnonzero(later > 0)
        place = np.searchsorted(rows, every, side="right") - 1
        mixtures = [_mix(left[rows], probability=probability, share=share) for probability, share in ends]
        for values, some in zip(found, BetaChain(n - d + 1.0, d).quantiles(mixtures, rows), strict=True):
            values[every] = np.where((left[every] == 0.0) & (values[every] == 0.0), 0.0, some[place])
    low, high = (np.asarray(np.maximum.accumulate(values)) for values in found)
    return low, high


def _quantile_of_extra(left: Floats, *, probability: float, share: float) -> Floats:
    """Compute the quantile where no delay is after k: 1 with probability 1 − share, E_k with probability share."""
    below = min(1.0, probability / share) if share > 0.0 else 1.0
    power = np.divide(1.0, left, out=np.ones(len(left)), where=left > 0.0)
    return np.where(left > 0.0, below**power, float(probability > share))


def _mix(left: Floats, *, probability: float, share: float) -> Mixture:
    """Mix Π_k and Π_k·E_k; where E_k is 0, an atom, take it out, and ask for what is left of the probability."""
    atom = left == 0.0
    rest = (probability - share) / (1.0 - share) if probability > share else 0.5  # else the quantile is 0, not asked
    return Mixture(np.where(atom, rest, probability), np.where(atom, 0.0, share), np.where(atom, 1.0, left))


def anytime_band(closed: Delays, *, level: float) -> tuple[Floats, Floats]:
    """Compute the band that holds at every look, from the delays of closed rounds in each bin; at the last both are 1.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = anytime_band(np.array([500, 300, 200]), level=0.9)
    >>> low.round(3), high.round(3)
    (array([0.445, 0.754, 1.   ]), array([0.555, 0.841, 1.   ]))
    """
    counts, place = np.unique(np.cumsum(closed), return_inverse=True)
    total = float(np.sum(closed))
    from scipy.special import betaln, xlogy  # noqa: PLC0415 - SciPy is loaded where it is used

    least = np.log(1.0 - level) + betaln(0.5 + counts, 0.5 + total - counts) - betaln(0.5, 0.5)
    centre = counts / max(total, 1.0) if total else np.full(len(counts), 0.5)

    def find_end(outside: Floats) -> Floats:
        inside = centre.copy()
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2.0
            kept = xlogy(counts, middle) + xlogy(total - counts, 1.0 - middle) > least
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        return np.asarray(outside[place])

    low, high = find_end(np.zeros(len(counts))), find_end(np.ones(len(counts)))
    low[-1] = high[-1] = 1.0
    return low, high
