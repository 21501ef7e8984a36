"""Gaussian draws from N(θ̂, scale²·V⁻¹).

With V = UᵀU, U upper triangular, x = U⁻¹z has covariance V⁻¹ when z is standard normal. U is kept by rank-one updates,
O(d²) a round, which are backward stable: an update only ever adds to V.
"""

import math

from latecomer.core.jit import kernel
from latecomer.core.state import Array, State


@kernel
def cholesky_rank_one_update(root: Array, action: Array, rest: Array) -> None:
    """U becomes the root of UᵀU + aaᵀ, by Givens rotations; `rest` is working room."""
    dim = root.shape[0]
    for i in range(dim):
        rest[i] = action[i]
    for k in range(dim):
        if rest[k] == 0.0:
            continue
        diagonal = math.hypot(root[k, k], rest[k])
        cosine = root[k, k] / diagonal
        sine = rest[k] / diagonal
        root[k, k] = diagonal
        for j in range(k + 1, dim):
            upper = root[k, j]
            root[k, j] = cosine * upper + sine * rest[j]
            rest[j] = cosine * rest[j] - sine * upper


@kernel
def sample_theta(state: State, scale: float, normals: Array) -> None:
    """state.sample = θ̂ + scale·U⁻¹z; θ̂ must be in state.theta_hat."""
    dim = state.B.shape[0]
    sample = state.sample
    for step in range(dim):
        k = dim - 1 - step
        rest = normals[k]
        for j in range(k + 1, dim):
            rest -= state.root[k, j] * sample[j]
        sample[k] = rest / state.root[k, k]
    for i in range(dim):
        sample[i] = state.theta_hat[i] + scale * sample[i]
