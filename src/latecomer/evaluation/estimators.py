"""The estimators: IPS, SNIPS and DR while conversions are on their way, with intervals and lift.

E[Y_s | x, a] = F_m(R_s)·p(x, a), so each estimator divides by maturity where the usual one counts rounds:

    IPS    Σ wY / Σ f                          ψ = wY − f·v̂                          c = v̂
    SNIPS  Σ wY / Σ wf                         ψ = w(Y − f·v̂)                        c = w·v̂
    DR     Σ [f·dm + w(Y − f·p̂)] / Σ f         ψ = f·dm + w(Y − f·p̂) − f·v̂          c = v̂ + w·p̂ − dm

    se² = [Σ ψ² + Σ_j C_j² q̂_j/((1 − q̂_j) n_j)] / D²,    C_j = Σ_{R_s < j} c_s f_s,

with D the denominator and the second sum Greenwood's, for F̂ is estimated too. The interval is on the log scale,
v̂·exp(±z·se/v̂). Where every round is closed (f = 1) these are the ordinary estimators. "logged" is Σ Y / Σ f.
"""

import math
from dataclasses import dataclass

import numpy as np

from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation.sums import (
    COMPONENTS,
    CORRECTION,
    MATURITY,
    OUTCOME,
    WEIGHT,
    WEIGHTED_MATURITY,
    WEIGHTED_OUTCOME,
    Sums,
)

ESTIMATORS = ("snips", "ips", "dr")
LOGGED = "logged"


def _unit(*places: int) -> Floats:
    vector = np.zeros(COMPONENTS)
    vector[list(places)] = 1.0
    return vector


_OUTCOMES = {LOGGED: _unit(OUTCOME)}
"""Of each estimator the part of the numerator that conversions are in; by default wY."""
_CORRECTIONS = {"dr": _unit(CORRECTION)}
_DENOMINATORS = {"snips": _unit(WEIGHTED_MATURITY)}
"""By default f."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A policy's conversions (or value) for each decision, with its error."""

    value: float
    standard_error: float
    influence: Floats
    """h with ψ_s/D = h·g_s."""
    waiting: Floats
    """Of the components, c·f/D: what the estimate loses where F̂ is too high."""
    confidence: float = 0.9

    @property
    def interval(self) -> tuple[float, float]:
        """The interval on the log scale; on the plain one where the estimate is not above 0."""
        z = _quantile(self.confidence)
        if self.value > 0.0:
            factor = math.exp(z * self.standard_error / self.value)
            return self.value / factor, self.value * factor
        return self.value - z * self.standard_error, self.value + z * self.standard_error


def estimate(sums: Sums, estimator: str, greenwood: Floats, *, confidence: float = 0.9) -> Estimate:
    """Estimate a policy's mean outcome within the window.

    Parameters
    ----------
    sums
        Of the rounds, by `sum_rounds`.
    estimator
        "snips", "ips", "dr", or "logged" for the policy that made the log.
    greenwood
        q̂_j/((1 − q̂_j) n_j) of every bin of ages.
    confidence
        Of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> from latecomer.evaluation.estimators import estimate
    >>> from latecomer.evaluation.sums import sum_rounds
    >>> weights, outcomes = np.array([2.0, 0.5, 1.0, 0.5]), np.array([1.0, 0.0, 1.0, 1.0])
    >>> closed = sum_rounds(weights, outcomes, maturity=np.ones(4))
    >>> [estimate(closed, name, np.zeros(1)).value for name in ("ips", "snips", "logged")]
    [0.875, 0.875, 0.75]
    """
    outcome, correction, denominator = _parts(estimator)
    total = sums.total
    size = float(denominator @ total)
    if not size > 0.0:
        nothing = np.zeros(COMPONENTS)
        return Estimate(math.nan, math.nan, nothing, nothing, confidence)
    value = float((outcome + correction) @ total) / size
    influence = (outcome + correction - value * denominator) / size
    waiting = (value * denominator - correction) / size
    error = _standard_error(sums, influence, waiting, greenwood)
    return Estimate(value, error, influence, waiting, confidence)


def estimate_lift(target: Estimate, logged: Estimate, sums: Sums, greenwood: Floats) -> tuple[float, float, float]:
    """Estimate v_π/v_0 − 1, with its interval: both on the same rounds, by the influence on the log of the ratio."""
    if not (target.value > 0.0 and logged.value > 0.0):
        return math.nan, math.nan, math.nan
    influence = target.influence / target.value - logged.influence / logged.value
    waiting = target.waiting / target.value - logged.waiting / logged.value
    error = _standard_error(sums, influence, waiting, greenwood)
    ratio, factor = target.value / logged.value, math.exp(_quantile(target.confidence) * error)
    return ratio - 1.0, ratio / factor - 1.0, ratio * factor - 1.0


def estimate_difference(
    target: Estimate, logged: Estimate, sums: Sums, greenwood: Floats
) -> tuple[float, float, float]:
    """Estimate v_π − v_0, with its interval on the plain scale: both on the same rounds."""
    difference = target.value - logged.value
    error = _standard_error(sums, target.influence - logged.influence, target.waiting - logged.waiting, greenwood)
    margin = _quantile(target.confidence) * error
    return difference, difference - margin, difference + margin


def mean_weight(sums: Sums) -> tuple[float, float]:
    """Return the mean weight, which is 1 where propensities are right and there is support, and its standard error."""
    mean = float(sums.total[WEIGHT]) / sums.rounds
    square = float(sums.second[WEIGHT, WEIGHT]) / sums.rounds
    return mean, math.sqrt(max(0.0, square - mean**2) / sums.rounds)


def effective_conversions(sums: Sums) -> float:
    """Return (Σ wY)²/Σ (wY)²: how many conversions of equal weight would say as much."""
    square = float(sums.second[WEIGHTED_OUTCOME, WEIGHTED_OUTCOME])
    return float(sums.total[WEIGHTED_OUTCOME]) ** 2 / square if square > 0.0 else 0.0


def _parts(estimator: str) -> tuple[Floats, Floats, Floats]:
    """Return the outcomes and the correction, which make the numerator, and the denominator."""
    if estimator not in (*ESTIMATORS, LOGGED):
        raise InputError(f"estimator must be one of {', '.join(ESTIMATORS)}; got {estimator!r}", field="estimator")
    return (
        _OUTCOMES.get(estimator, _unit(WEIGHTED_OUTCOME)),
        _CORRECTIONS.get(estimator, _unit()),
        _DENOMINATORS.get(estimator, _unit(MATURITY)),
    )


def _standard_error(sums: Sums, influence: Floats, waiting: Floats, greenwood: Floats) -> float:
    spread = float(influence @ sums.second @ influence)
    younger = np.cumsum(sums.by_bin @ waiting)[:-1]  # C_j/D: rounds that were not watched to the end of bin j
    return math.sqrt(max(0.0, spread) + float(younger**2 @ greenwood))


def _quantile(confidence: float) -> float:
    from scipy.special import ndtri  # noqa: PLC0415 - SciPy is loaded where it is used

    return float(ndtri(0.5 + confidence / 2.0))
