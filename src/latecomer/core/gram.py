"""A Gram matrix that grows and shrinks: factorised afresh where it is needed, G = LLᵀ, O(d³/6).

Weights that move up and down by sixteenths rule rank-one updates of a root out; a Cholesky factor costs less than they
would up to some dozens of dimensions, and LAPACK makes it above.
"""

import math

import numpy as np

from latecomer.core.compile import kernel
from latecomer.core.state import LANES, Array, Ring, State
from latecomer.core.vectors import UNROLLED


@kernel
def add_outer(gram: Array, ring: Ring, slot: int, weight: float) -> None:
    """G += weight·A_s A_sᵀ, for the round in that slot; the lower triangle alone."""
    action, lane = ring[slot // LANES].action, slot % LANES
    for i in range(gram.shape[0]):
        weighted = weight * action[i, lane]
        for j in range(i + 1):
            gram[i, j] += weighted * action[j, lane]


@kernel
def factorise(gram: Array, factor: Array) -> None:
    """L, lower triangular, with LLᵀ = G; only the lower triangle of G is read."""
    dim = gram.shape[0]
    if dim <= UNROLLED:
        for i in range(dim):
            for j in range(i):
                rest = gram[i, j]
                for k in range(j):
                    rest -= factor[i, k] * factor[j, k]
                factor[i, j] = rest / factor[j, j]
            rest = gram[i, i]
            for k in range(i):
                rest -= factor[i, k] * factor[i, k]
            factor[i, i] = math.sqrt(rest)
    else:
        factor[:, :] = np.linalg.cholesky(gram)  # LAPACK, too, reads the lower triangle alone


@kernel
def forward(factor: Array, x: Array) -> None:
    """X = L⁻¹x, in place."""
    for i in range(x.shape[0]):
        rest = x[i]
        for k in range(i):
            rest -= factor[i, k] * x[k]
        x[i] = rest / factor[i, i]


@kernel
def backward(factor: Array, x: Array) -> None:
    """X = L⁻ᵀx, in place."""
    dim = x.shape[0]
    for step in range(dim):
        i = dim - 1 - step
        x[i] /= factor[i, i]
        for k in range(i):
            x[k] -= factor[i, k] * x[i]


@kernel
def gram_estimate(state: State) -> None:
    """state.theta_hat = G⁻¹B, and state.factor = L."""
    factorise(state.gram, state.factor)
    theta_hat = state.theta_hat
    for i in range(theta_hat.shape[0]):
        theta_hat[i] = state.B[i]
    forward(state.factor, theta_hat)
    backward(state.factor, theta_hat)


@kernel
def gram_draw(state: State, scale: float, normals: Array) -> None:
    """state.sample = θ̂ + scale·L⁻ᵀz ~ N(θ̂, scale²·G⁻¹); after `gram_estimate`."""
    sample = state.sample
    for i in range(sample.shape[0]):
        sample[i] = normals[i]
    backward(state.factor, sample)
    for i in range(sample.shape[0]):
        sample[i] = state.theta_hat[i] + scale * sample[i]


@kernel
def gram_norms(state: State, actions: Array, out: Array) -> None:
    """out[k] = ‖a_k‖² in G⁻¹ = ‖L⁻¹a_k‖², all actions side by side; after `gram_estimate`."""
    dim, count = state.B.shape[0], actions.shape[0]
    halves = np.empty((dim, count))
    for k in range(count):
        out[k] = 0.0
    for i in range(dim):
        row = halves[i]
        for k in range(count):
            row[k] = actions[k, i]
        for j in range(i):
            known, entry = halves[j], state.factor[i, j]
            for k in range(count):
                row[k] -= entry * known[k]
        scale = 1.0 / state.factor[i, i]
        for k in range(count):
            row[k] *= scale
            out[k] += row[k] * row[k]
