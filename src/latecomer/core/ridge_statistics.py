"""Ridge statistics under rank-one updates: V, V⁻¹, ln det V, θ̂.

V is a plain sum and stays exact to rounding; V⁻¹ follows it by Sherman-Morrison and drifts. Now and then the residual
|V·V⁻¹ − I| is measured, and past `DRIFT` V⁻¹ is computed afresh from V by Cholesky.
"""

import math

import numpy as np

from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.linalg.cholesky import factorise, update_factor
from latecomer.core.linalg.products import UNROLLED, dot, multiply
from latecomer.core.state import Array, State

DRIFT = 1e-8
"""The largest |V·V⁻¹ − I| that is left as it is."""
STEEP = 1e4
"""An update with ‖a‖²_{V⁻¹} above this cancels four digits or more: V⁻¹ is checked at once."""


@kernel
def estimate(state: State) -> None:
    """Fill state.theta_hat with θ̂ = V⁻¹B, Eq. 1 (Vernade et al., ICML 2020)."""
    multiply(state.V_inv, state.B, state.theta_hat)


@kernel
def rank_one_update(state: State, action: Array) -> float:
    """Add aaᵀ to V, and update V⁻¹, ln det V and U. Leave u = V⁻¹a (before) in state.u; return c = a·u."""
    dim = state.B.shape[0]
    u = state.u
    multiply(state.V_inv, action, u)
    c = dot(action, u, dim)
    if c < 0.0:  # V⁻¹ is positive; what rounding has left of it is not
        c, state.residual = 0.0, np.inf
    shrink = 1.0 / (1.0 + c)
    for i in range(dim):
        a_i = action[i]
        u_i = u[i] * shrink
        for j in range(dim):
            state.V[i, j] += a_i * action[j]
            state.V_inv[i, j] -= u_i * u[j]  # Sherman-Morrison
    state.log_det += math.log1p(c)  # ln det(V + aaᵀ) = ln det V + ln(1 + c)
    if state.chol.shape[0] == dim:
        update_factor(state.chol, action, state.sample)
    return c


@kernel
def is_check_due(state: State, c: float) -> bool:
    """Tell whether V⁻¹ is to be checked: after a steep update, and every 1,024 rounds or 8d, for the check is O(d³)."""
    return c > STEEP or state.residual == np.inf or state.rounds % max(1024, 8 * state.B.shape[0]) == 0


@kernel_noinline
def residual(V: Array, V_inv: Array) -> float:
    """Return max |V·V⁻¹ − I|."""
    dim = V.shape[0]
    worst = 0.0
    if dim <= UNROLLED:
        for i in range(dim):
            for j in range(dim):
                entry = dot(V[i], V_inv[j], dim) - (1.0 if i == j else 0.0)
                worst = max(worst, abs(entry))
    else:
        product = np.dot(V, V_inv)
        for i in range(dim):
            product[i, i] -= 1.0
            for j in range(dim):
                worst = max(worst, abs(product[i, j]))
    return worst


@kernel_noinline
def refactorise(V: Array, V_inv: Array, chol: Array, ridge: float, rounds: int) -> None:
    """Compute V⁻¹ (and U, where it is kept) afresh from V: V = UᵀU by Cholesky, V⁻¹ = U⁻¹U⁻ᵀ."""
    dim = V.shape[0]
    upper = np.zeros((dim, dim))
    factorise(V, 0.0, ridge, float(rounds), upper)  # V ≥ λI, so no pivot is below λ
    if chol.shape[0] == dim:
        for i in range(dim):
            for j in range(dim):
                chol[i, j] = upper[i, j]
    inverse = np.zeros((dim, dim))  # U⁻ᵀ, lower triangular, by forward substitution; V⁻¹ = inverseᵀ·inverse
    for k in range(dim):
        inverse[k, k] = 1.0
    for k in range(dim):
        for j in range(k + 1):
            inverse[k, j] /= upper[k, k]
        for i in range(k + 1, dim):
            factor = upper[k, i]
            for j in range(k + 1):
                inverse[i, j] -= factor * inverse[k, j]
    for i in range(dim):
        for j in range(dim):
            V_inv[i, j] = 0.0
    for k in range(dim):
        for i in range(k + 1):
            factor = inverse[k, i]
            for j in range(k + 1):
                V_inv[i, j] += factor * inverse[k, j]


@kernel_noinline
def refresh_inverse_if_drifted(state: State) -> bool:
    """Measure the residual, and refactorise where it is past `DRIFT`; return whether it was.

    The two steps take arrays, not the state: they are compiled once for each d, whatever the algorithm.
    """
    state.residual = residual(state.V, state.V_inv)
    if state.residual <= DRIFT:
        return False
    refactorise(state.V, state.V_inv, state.chol, state.ridge, state.rounds)
    state.refactorisations += 1
    return True
