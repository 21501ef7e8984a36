"""Gaussian samples: with UᵀU = M, U upper triangular, and z standard normal, U⁻¹z has covariance M⁻¹."""

import numpy as np

from latecomer.core.jit import kernel, vectorised
from latecomer.core.linalg.cholesky import factorise, solve_upper, whiten
from latecomer.core.linalg.products import EPSILON, TIE, argmax_first
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


@kernel
def spread_scores(factor: Array, actions: Array, scale: float, spread: Array) -> None:
    """Fill spread[:, k] with scale·U⁻ᵀa_k, so that ⟨a_k, scale·U⁻¹z⟩ = Σ_i z_i·spread[i, k]."""
    for i in range(actions.shape[1]):
        for k in range(actions.shape[0]):
            spread[i, k] = scale * actions[k, i]
    whiten(factor, spread)


LEAST_PIVOT = 1e-300
"""An action of no variance has a pivot of 0, by which nothing may be divided."""


@kernel
def shorten_spread(spread: Array, short: Array) -> None:
    """Fill `short`, K × K, with a factor of the scores' covariance: K normal numbers a sample where that is fewer."""
    count = spread.shape[1]
    covariance = np.zeros((count, count))
    for i in range(spread.shape[0]):
        for k in range(count):
            for j in range(k, count):
                covariance[k, j] += spread[i, k] * spread[i, j]
    factorise(covariance, 0.0, LEAST_PIVOT, 1.0, short)
    for k in range(count):
        for j in range(k):
            short[k, j] = 0.0
        if short[k, k] * short[k, k] <= 4.0 * EPSILON * covariance[k, k]:  # rounding: earlier actions determine it
            for j in range(k, count):
                short[k, j] = 0.0


def _count_wins(means: Array, spread: Array, normals: Array, samples: int, wins: Array) -> None:
    noise = np.zeros((len(normals), len(means)))
    for i in range(normals.shape[1]):
        noise += normals[:, i, None] * spread[i]
    scores = np.concatenate([means + noise, (means - noise)[: samples - len(normals)]])
    best, top = np.zeros(len(scores), np.int64), scores[:, 0].copy()
    for k in range(1, len(means)):
        better = scores[:, k] > top + TIE * (1.0 + np.abs(top))
        best[better], top[better] = k, scores[better, k]
    wins[:] = np.bincount(best, minlength=len(means))


@vectorised(_count_wins)
def count_wins(means: Array, spread: Array, normals: Array, samples: int, wins: Array) -> None:
    """Count how often each action has the largest score, means + Σ_i z_i·spread[i], in so many samples.

    A row z of `normals` makes two samples, z and −z: either has the right law, and together they vary less.
    """
    count = means.shape[0]
    noise, scores = np.empty(count), np.empty(count)
    for k in range(count):
        wins[k] = 0.0
    for row in range(normals.shape[0]):
        for k in range(count):
            noise[k] = 0.0
        for i in range(normals.shape[1]):
            z = normals[row, i]
            for k in range(count):
                noise[k] += z * spread[i, k]
        for k in range(count):
            scores[k] = means[k] + noise[k]
        wins[argmax_first(scores)] += 1.0
        if row < samples - normals.shape[0]:
            for k in range(count):
                scores[k] = means[k] - noise[k]
            wins[argmax_first(scores)] += 1.0
