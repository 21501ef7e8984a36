"""Gaussian samples: with UᵀU = M, U upper triangular, and z standard normal, U⁻¹z has covariance M⁻¹."""

import numpy as np

from latecomer.core.jit import kernel, vectorised
from latecomer.core.linalg.cholesky import factorise, solve_upper, whiten
from latecomer.core.linalg.products import EPSILON, TIE
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


def _add_squares(spread: Array, out: Array) -> None:
    fours = len(spread) - len(spread) % 4
    for i in range(0, fours, 4):
        a, b, c, d = spread[i : i + 4, :, None]
        p, q, r, s = spread[i : i + 4]
        out += (a * p + b * q) + (c * r + d * s)
    for row in spread[fours:]:
        out += row[:, None] * row


@vectorised(_add_squares)
def add_squares(spread: Array, out: Array) -> None:
    """Add the upper triangle of spreadᵀ·spread to that of `out`."""
    dim, count = spread.shape
    fours = dim - dim % 4
    for i in range(0, fours, 4):
        for k in range(count):
            a, b, c, d = spread[i, k], spread[i + 1, k], spread[i + 2, k], spread[i + 3, k]
            for j in range(k, count):
                upper = a * spread[i, j] + b * spread[i + 1, j]
                out[k, j] += upper + (c * spread[i + 2, j] + d * spread[i + 3, j])
    for i in range(fours, dim):
        for k in range(count):
            for j in range(k, count):
                out[k, j] += spread[i, k] * spread[i, j]


@kernel
def shorten_spread(spread: Array, short: Array) -> None:
    """Fill `short`, K × K, with a factor of the scores' covariance: K normal numbers a sample where that is fewer."""
    count = spread.shape[1]
    covariance = np.zeros((count, count))
    add_squares(spread, covariance)
    factorise(covariance, 0.0, LEAST_PIVOT, 1.0, short)
    for k in range(count):
        for j in range(k):
            short[k, j] = 0.0
        if short[k, k] * short[k, k] <= 4.0 * EPSILON * covariance[k, k]:  # rounding: earlier actions determine it
            for j in range(k, count):
                short[k, j] = 0.0


def _count_wins(means: Array, spread: Array, normals: Array, samples: int, wins: Array) -> None:
    pairs, count = normals.shape[1], len(means)
    best, top = np.zeros((2, pairs), np.int64), np.empty((2, pairs))
    for k in range(count):
        noise = np.zeros(pairs)
        for z, share in zip(normals, spread[:, k], strict=True):
            noise += share * z
        scores = means[k] + np.stack((noise, -noise))
        better = scores > top + TIE * (1.0 + np.abs(top)) if k else np.ones((2, pairs), bool)
        best[better], top[better] = k, scores[better]
    wins[:] = np.bincount(np.concatenate((best[0], best[1, : samples - pairs])), minlength=count)


@vectorised(_count_wins)
def count_wins(means: Array, spread: Array, normals: Array, samples: int, wins: Array) -> None:
    """Count how often each action has the largest score, means + Σ_i z_i·spread[i], in so many samples.

    A column z of `normals` makes two samples, z and −z: either has the right law, and together they vary less. All
    samples are scored side by side, action by action; a later one must win as in `argmax_first`.
    """
    count, numbers, pairs = means.shape[0], normals.shape[0], normals.shape[1]
    noise, best, top = np.empty(pairs), np.zeros((2, pairs)), np.empty((2, pairs))
    for k in range(count):
        wins[k] = 0.0
        for j in range(pairs):
            noise[j] = 0.0
        for i in range(numbers):
            share = spread[i, k]
            if share != 0.0:  # half of a short spread is 0
                for j in range(pairs):
                    noise[j] += share * normals[i, j]
        for side in range(2):
            for j in range(pairs):
                score = means[k] + (1.0 - 2.0 * side) * noise[j]
                better = k == 0 or score > top[side, j] + TIE * (1.0 + abs(top[side, j]))
                best[side, j] = k if better else best[side, j]
                top[side, j] = score if better else top[side, j]
    for side in range(2):
        for j in range(pairs if side == 0 else samples - pairs):
            wins[int(best[side, j])] += 1.0
