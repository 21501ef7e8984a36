"""Gaussian samples: with UᵀU = M, U upper triangular, and z standard normal, U⁻¹z has covariance M⁻¹."""

from latecomer.core.jit import kernel
from latecomer.core.linalg.cholesky import solve_upper
from latecomer.core.state import Array, State


@kernel
def sample_gaussian(factor: Array, mean: Array, scale: float, normals: Array, sample: Array) -> None:
    """Fill `sample` with mean + scale·U⁻¹z ~ N(mean, scale²·M⁻¹); z is the first entries of `normals`."""
    for i in range(sample.shape[0]):
        sample[i] = normals[i]
    solve_upper(factor, sample)
    for i in range(sample.shape[0]):
        sample[i] = mean[i] + scale * sample[i]


@kernel
def sample_theta(state: State, scale: float, normals: Array) -> None:
    """Fill state.sample with θ̂ + scale·U⁻¹z ~ N(θ̂, scale²·V⁻¹); θ̂ must be in state.theta_hat."""
    sample_gaussian(state.chol, state.theta_hat, scale, normals, state.sample)
