"""Theorems 2 and 3 of the paper (Vernade et al., ICML 2020), and the bound of the tight width."""

import math

from latecomer.core.width import radius
from latecomer.errors import InputError
from latecomer.validation import check_integer, check_number, check_positive, check_probability


def upper_bound(horizon: int, *, dim: int, window: int, tau: float, ridge: float = 1.0, delta: float = 0.1) -> float:
    """Theorem 2: with probability 1 − 2δ, R(T) ≤ (4f_{T,δ}/τ_m)·√(2dTℓ) + (4md/τ_m)·ℓ, ℓ = ln((dλ + T)/(dλ)).

    Differs from the paper: its n is T. The potential step of its proof needs λ ≥ 1, and so does this function.

    >>> round(upper_bound(100_000, dim=2, window=0, tau=1.0))
    50952
    """
    log = _check_arguments(horizon, dim, window, ridge)
    tau, f = check_tau(tau), radius(horizon, dim, ridge, check_probability("delta", delta))
    return 4.0 * f / tau * math.sqrt(2.0 * dim * horizon * log) + 4.0 * window * dim / tau * log


def tight_upper_bound(
    horizon: int, *, dim: int, window: int, tau: float, ridge: float = 1.0, delta: float = 0.1
) -> float:
    """With probability 1 − δ the regret of `OTFLinUCB(width="tight")` is at most (1/τ_m)·(2r_T·√(2dTℓ) + 2mdℓ).

    r_T = √λ + ½√(2 ln(1/δ) + dℓ) and ℓ = ln(1 + T/(dλ)); needs λ ≥ 1. The proof is in
    docs/explanation/theory/tight-width.md.

    >>> round(tight_upper_bound(100_000, dim=2, window=0, tau=1.0))
    14818
    """
    log = _check_arguments(horizon, dim, window, ridge)
    noise = 0.5 * math.sqrt(-2.0 * math.log(check_probability("delta", delta)) + dim * log)
    r = math.sqrt(ridge) + noise
    return (2.0 * r * math.sqrt(2.0 * dim * horizon * log) + 2.0 * window * dim * log) / check_tau(tau)


def lower_bound(horizon: int, *, arms: int, tau: float) -> float:
    """Theorem 3 with its constant, from the appendix: max over its two bandits of R(T) ≥ (TΔ/8)·exp(−32τ_mΔ²T/(K−1)).

    Δ is `gap`.
    """
    delta = gap(horizon, arms=arms, tau=tau)
    return horizon * delta / 8.0 * math.exp(-32.0 * tau * delta * delta * horizon / (arms - 1))


def gap(horizon: int, *, arms: int, tau: float) -> float:
    """Δ = min(1/8, √((K−1)/(64τ_mT))): the gap at which the two bandits of Theorem 3 are hardest to tell apart."""
    check_integer("horizon", horizon, least=1)
    check_integer("arms", arms, least=2)
    return min(0.125, math.sqrt((arms - 1) / (64.0 * check_tau(tau) * horizon)))


def vacuous_until(*, dim: int, window: int, tau: float, ridge: float = 1.0, delta: float = 0.1) -> int:
    """The first T at which Theorem 2's bound is below T, which any policy's regret is.

    >>> vacuous_until(dim=2, window=1, tau=1.0) > 15_000
    True
    """

    def says_nothing(horizon: int) -> bool:
        return upper_bound(horizon, dim=dim, window=window, tau=tau, ridge=ridge, delta=delta) >= horizon

    high = 1
    while says_nothing(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if says_nothing(middle) else (low, middle)
    return high


def _check_arguments(horizon: int, dim: int, window: int, ridge: float) -> float:
    """Check the arguments of an upper bound; return ℓ = ln(1 + T/(dλ))."""
    check_integer("horizon", horizon, least=1)
    check_integer("dim", dim, least=1)
    check_integer("window", window, least=0)
    if check_positive("ridge", ridge) < 1.0:
        raise InputError(f"ridge must be at least 1 for Theorem 2 to hold; got {ridge!r}", field="ridge")
    return math.log((dim * ridge + horizon) / (dim * ridge))


def check_tau(tau: float) -> float:
    """Return τ_m, the share of conversions that the window keeps; `InputError` where it is not above 0, up to 1."""
    tau = check_number("tau", tau, "a number above 0 and at most 1")
    if not 1e-9 <= tau <= 1.0:
        raise InputError(
            f"tau must be above 0 and at most 1, the share of conversions that the window keeps; got {tau!r}",
            field="tau",
        )
    return tau
