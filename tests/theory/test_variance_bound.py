"""The regret bound of the variance-aware width: its numbers, and its growth as τ falls."""

import math
from typing import Any

import numpy as np
import pytest

from latecomer.errors import InputError
from latecomer.theory import lower_bound, tight_upper_bound, variance_upper_bound


def test_variance_bound_equals_the_formula_by_hand() -> None:
    T, d, m, tau, lam, delta, kappa = 10**6, 3, 20, 0.2, 2.0, 0.05, 4.0
    eps, c, u_min, J = 0.25, 0.25, 1e-4, 7
    B = 1 / (c * np.sqrt(lam))
    C_B = B / np.log(1 + B)
    w = 1 / (u_min * (1 - u_min))
    Lam = d * np.log(1 + T * w / (d * lam))
    gamma = 2 * np.log(J / delta) + d * np.log(1 + T * w**2 / (3 * d))
    K = 4 / 3 * (math.e - 1) * Lam + np.log(1 / delta) / (3 * c**2)
    C_N = 2 * (1 + B) + 2 * ((1 + eps) ** 2 - 1) * C_B * (2 * np.log(1 + eps) + np.log(1 + B))
    E = (1 + eps) ** 2 * C_B * Lam / lam
    Gamma = np.sqrt(gamma * (C_N * K + E)) + lam * np.sqrt(E)
    P = (tau + u_min) * T + c**2 * C_B * Lam
    bad = m * Lam / (2 * np.log(1 + eps))
    arguments: dict[str, Any] = {"dim": d, "window": m, "tau": tau, "ridge": lam, "delta": delta}
    for factor, guard in ((1.0, 0.0), (1 + kappa, kappa)):
        expected = 2 * factor / tau * (Gamma * np.sqrt(P) + 2 * Gamma**2) + bad
        assert variance_upper_bound(T, guard=guard, **arguments) == pytest.approx(expected, rel=1e-12)


def test_leading_term_grows_as_the_lower_bound_does() -> None:
    """At a horizon where the leading term is all: R ~ τ^(−1/2), as the lower bound; that of the tight width ~ 1/τ."""
    T, taus = 10**16, np.array([0.8, 0.4, 0.2, 0.1, 0.05, 0.025])
    bounds = {
        -0.5: [variance_upper_bound(T, dim=3, window=10, tau=tau) for tau in taus],
        -1.0: [tight_upper_bound(T, dim=3, window=10, tau=tau) for tau in taus],
    }
    for expected, values in bounds.items():
        assert np.polyfit(np.log(taus), np.log(values), 1)[0] == pytest.approx(expected, abs=0.01)
    lowest = [lower_bound(T, arms=3, tau=tau) for tau in taus]
    assert np.polyfit(np.log(taus), np.log(lowest), 1)[0] == pytest.approx(-0.5, abs=1e-9)


def test_variance_bound_refuses_what_the_proof_does_not_cover() -> None:
    with pytest.raises(InputError, match="tau must be above 0 and at most 1"):
        variance_upper_bound(10, dim=2, window=1, tau=0.0)
    with pytest.raises(InputError, match="guard"):
        variance_upper_bound(10, dim=2, window=1, tau=0.5, guard=-1.0)
