"""The regret bound of the variance-aware width and of guarded policies.

The proof is in docs/explanation/theory/variance-width.md.
"""

import math

from latecomer.core.confidence_set import LEAST_BOUND, MIXTURES, SLACK, VARIANCE_FLOOR
from latecomer.theory.bounds import check_tau
from latecomer.validation import check_integer, check_nonnegative, check_positive, check_probability


def growth_ratio(ridge: float) -> tuple[float, float]:
    """B = 1/(c√λ), the most that w‖A‖² can be, and C_B = B/ln(1 + B): b ≤ C_B·ln(1 + b) for b ≤ B."""
    largest = 1.0 / (VARIANCE_FLOOR * math.sqrt(ridge))
    return largest, largest / math.log1p(largest)


def delayed_energy(ridge: float) -> float:
    """C_N = 2(1 + B) + 2((1 + ε)² − 1)·C_B·(2 ln(1 + ε) + ln(1 + B)), the constant of Lemma 5."""
    largest, ratio = growth_ratio(ridge)
    inside = 2.0 * math.log1p(SLACK) + math.log1p(largest)
    return 2.0 * (1.0 + largest) + 2.0 * ((1.0 + SLACK) ** 2 - 1.0) * ratio * inside


def variance_upper_bound(
    horizon: int, *, dim: int, window: int, tau: float, ridge: float = 1.0, delta: float = 0.1, guard: float = 0.0
) -> float:
    """With probability 1 − 2δ the regret is at most (2(1 + κ)/τ_m)·(Γ√P + 2Γ²) + mΛ/(2 ln(1 + ε)).

    It is that of `OTFLinUCB(width="variance")`, where κ = 0, and of a policy with a guard of κ, whose λ is 1 and whose
    δ is 0.1. Γ² is of the order of d² (up to logarithms) and P is about τ_mT, so that the first part is Õ(d√(T/τ_m)).
    The constants are large: it says something where T is in the tens of millions. `policy.certificate` is smaller.

    >>> round(variance_upper_bound(10**8, dim=2, window=10, tau=0.5) / 1e6, 1)
    14.1
    """
    check_integer("horizon", horizon, least=1)
    check_integer("dim", dim, least=1)
    check_integer("window", window, least=0)
    check_positive("ridge", ridge)
    tau, delta, kappa = check_tau(tau), check_probability("delta", delta), check_nonnegative("guard", guard)
    heaviest = 1.0 / (LEAST_BOUND * (1.0 - LEAST_BOUND))
    growth = dim * math.log1p(horizon * heaviest / (dim * ridge))  # Λ
    level = 2.0 * math.log(MIXTURES / delta) + dim * math.log1p(horizon * heaviest**2 / (3.0 * dim))  # γ
    _, ratio = growth_ratio(ridge)
    observed = (math.e - 1.0) * 4.0 / 3.0 * growth + math.log(1.0 / delta) / (3.0 * VARIANCE_FLOOR**2)  # K
    squares = (1.0 + SLACK) ** 2 * ratio * growth / ridge  # E
    factor = math.sqrt(level * (delayed_energy(ridge) * observed + squares)) + ridge * math.sqrt(squares)  # Γ
    variance = (tau + LEAST_BOUND) * horizon + VARIANCE_FLOOR**2 * ratio * growth  # P
    good = 2.0 * (1.0 + kappa) / tau * (factor * math.sqrt(variance) + 2.0 * factor**2)
    return good + window * growth / (2.0 * math.log1p(SLACK))
