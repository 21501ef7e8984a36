"""Ridge statistics under rank-one updates: V, V⁻¹, ln det V, θ̂.

V is a plain sum and stays exact to rounding; V⁻¹ follows it by Sherman-Morrison and drifts. Now and then the residual
|V·V⁻¹ − I| is measured, and past `DRIFT` V⁻¹ is computed afresh from V by Cholesky.
"""

import ctypes
import math
from collections.abc import Callable

import numpy as np

from latecomer.core.jit import ExternalFunction, kernel, vectorised
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


def _add_outer_products(V: Array, V_inv: Array, action: Array, u: Array, shrink: float) -> None:
    V += action[:, None] * action
    V_inv -= (u * shrink)[:, None] * u


@vectorised(_add_outer_products)
def add_outer_products(V: Array, V_inv: Array, action: Array, u: Array, shrink: float) -> None:
    """V += aaᵀ and, by Sherman and Morrison, V⁻¹ −= shrink·uuᵀ."""
    dim = u.shape[0]
    for i in range(dim):
        a_i = action[i]
        u_i = u[i] * shrink
        for j in range(dim):
            V[i, j] += a_i * action[j]
            V_inv[i, j] -= u_i * u[j]


@kernel
def rank_one_update(state: State, action: Array) -> float:
    """Add aaᵀ to V, and update V⁻¹, ln det V and U. Leave u = V⁻¹a (before) in state.u; return c = a·u."""
    dim = state.B.shape[0]
    u = state.u
    multiply(state.V_inv, action, u)
    c = dot(action, u, dim)
    if c < 0.0:  # V⁻¹ is positive; what rounding has left of it is not
        c, state.residual = 0.0, np.inf
    add_outer_products(state.V, state.V_inv, action, u, 1.0 / (1.0 + c))
    state.log_det += math.log1p(c)  # ln det(V + aaᵀ) = ln det V + ln(1 + c)
    if state.chol.shape[0] == dim:
        update_factor(state.chol, action, state.sample)
    return c


@kernel
def is_check_due(state: State, c: float) -> bool:
    """Tell whether V⁻¹ is to be checked: after a steep update, and every 1,024 rounds or 8d, for the check is O(d³)."""
    return c > STEEP or state.residual == np.inf or state.rounds % max(1024, 8 * state.B.shape[0]) == 0


@kernel
def refresh_inverse_if_drifted(state: State) -> bool:
    """Measure the residual, and refactorise where it is past `DRIFT`; return whether it was.

    Refactorising is rare, and called back into Python from machine code: it need not be compiled for each dimension.
    So is the product of long matrices, for BLAS. That of short ones would take less time than the call does.
    """
    dim = state.B.shape[0]
    if dim <= UNROLLED:
        state.residual = short_residual(state.V, state.V_inv)
        if state.residual <= DRIFT:
            return False
    kept = 1 if state.chol.shape[0] == dim else 0
    state.residual = _refresh_inverse(
        state.V.ctypes, state.V_inv.ctypes, state.chol.ctypes, dim, kept, state.ridge, state.rounds
    )
    if state.residual <= DRIFT:
        return False
    state.refactorisations += 1
    return True


@kernel
def refresh_inverse(V: Array, V_inv: Array, least: float, rounds: int) -> float:
    """Measure |V·V⁻¹ − I| of V ≥ least·I, a sum of `rounds` terms; refactorise where it is past `DRIFT`; return it."""
    dim = V.shape[0]
    drift = short_residual(V, V_inv) if dim <= UNROLLED else np.inf
    if not drift <= DRIFT:
        drift = _refresh_inverse(V.ctypes, V_inv.ctypes, V.ctypes, dim, 0, least, rounds)
    return float(drift)


def _residual_by_columns(V: Array, V_inv: Array) -> float:
    product = np.zeros_like(V)
    for k in range(len(V)):
        product += V[:, k, None] * V_inv[k]
    return float(np.abs(product - np.eye(len(V))).max())


@vectorised(_residual_by_columns)
def short_residual(V: Array, V_inv: Array) -> float:
    """Compute `residual` by loops; NaN where any number is."""
    dim, worst = V.shape[0], 0.0
    for i in range(dim):
        for j in range(dim):
            product = 0.0
            for k in range(dim):
                product += V[i, k] * V_inv[k, j]
            gap = abs(product - (1.0 if i == j else 0.0))
            if not (gap <= worst or math.isnan(worst)):
                worst = gap
    return worst


def residual(V: Array, V_inv: Array) -> float:
    """Return max |V·V⁻¹ − I|."""
    return float(np.abs(V @ V_inv - np.eye(len(V))).max())


def refactorise(V: Array, V_inv: Array, chol: Array | None, ridge: float, rounds: int) -> float:
    """Compute V⁻¹ (and U, where it is kept) afresh from V: V = UᵀU by Cholesky, V⁻¹ = U⁻¹U⁻ᵀ.

    Returns ln det(V)/λ^d.
    """
    upper = np.zeros_like(V)
    factorise(V, 0.0, ridge, float(rounds), upper)  # V ≥ λI, so no pivot is below λ
    if chol is not None:
        chol[...] = upper
    inverse = np.eye(len(V))  # U⁻ᵀ, lower triangular, by forward substitution; V⁻¹ = inverseᵀ·inverse
    for k in range(len(V)):
        inverse[k, : k + 1] /= upper[k, k]
        inverse[k + 1 :, : k + 1] -= upper[k, k + 1 :, None] * inverse[k, : k + 1]
    V_inv[...] = 0.0
    for k in range(len(V)):
        V_inv[: k + 1, : k + 1] += inverse[k, : k + 1, None] * inverse[k, : k + 1]
    return 2.0 * sum(math.log(pivot) for pivot in np.diag(upper).tolist()) - len(V) * math.log(ridge)


@kernel
def renew_inverse(state: State) -> None:
    """Compute V⁻¹, U and ln det V afresh from V; called back into Python, as refactorising is."""
    dim = state.B.shape[0]
    kept = 1 if state.chol.shape[0] == dim else 0
    state.log_det = _renew_inverse(
        state.V.ctypes, state.V_inv.ctypes, state.chol.ctypes, dim, kept, state.ridge, state.rounds
    )


def _matrix_at(address: int, dim: int) -> Array:
    return np.ctypeslib.as_array((ctypes.c_double * (dim * dim)).from_address(address)).reshape(dim, dim)


def _refresh(V_at: int, V_inv_at: int, chol_at: int, dim: int, kept: int, ridge: float, rounds: int) -> float:
    V, V_inv = _matrix_at(V_at, dim), _matrix_at(V_inv_at, dim)
    drift = residual(V, V_inv)
    if not drift <= DRIFT:
        refactorise(V, V_inv, _matrix_at(chol_at, dim) if kept else None, ridge, rounds)
    return drift


def _renew(V_at: int, V_inv_at: int, chol_at: int, dim: int, kept: int, ridge: float, rounds: int) -> float:
    V, V_inv = _matrix_at(V_at, dim), _matrix_at(V_inv_at, dim)
    return refactorise(V, V_inv, _matrix_at(chol_at, dim) if kept else None, ridge, rounds)


def _make_external(symbol: str, function: Callable[..., float]) -> ExternalFunction:
    pointer = ctypes.c_void_p
    types = [pointer, pointer, pointer, ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_int64]
    signature = ("double", *["pointer"] * 3, "int64", "int64", "double", "int64")
    return ExternalFunction(symbol, signature, lambda: ctypes.CFUNCTYPE(ctypes.c_double, *types)(function))


_refresh_inverse = _make_external("latecomer_refresh_inverse", _refresh)
_renew_inverse = _make_external("latecomer_renew_inverse", _renew)
