"""The two ways in which most algorithms score actions: an upper confidence bound, or a sampled θ̃."""

import math

from latecomer.core.jit import kernel
from latecomer.core.linalg.norms import squared_norms
from latecomer.core.linalg.products import argmax_first, inner_products, row_dot
from latecomer.core.ridge_statistics import estimate
from latecomer.core.sampling import sample_theta, spread_scores
from latecomer.core.state import Array, State


@kernel
def add_bonuses(actions: Array, theta_hat: Array, bonus_scale: float, scores: Array) -> None:
    """scores[k] = ⟨a_k, θ̂⟩ + bonus_scale·√scores[k], where the scores come in as squared norms."""
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, theta_hat) + bonus_scale * math.sqrt(scores[k])


@kernel
def choose_by_upper_bound(state: State, actions: Array, bonus_scale: float, scores: Array) -> int:
    """Choose the largest ⟨a, θ̂⟩ + bonus_scale·‖a‖_{V⁻¹}, θ̂ = V⁻¹B."""
    estimate(state)
    squared_norms(state.V_inv, actions, scores)
    add_bonuses(actions, state.theta_hat, bonus_scale, scores)
    return argmax_first(scores)


@kernel
def choose_by_sample(state: State, actions: Array, scale: float, normals: Array, scores: Array) -> int:
    """Choose the largest ⟨a, θ̃⟩ with θ̃ ~ N(θ̂, scale²·V⁻¹), θ̂ = V⁻¹B."""
    estimate(state)
    sample_theta(state, scale, normals)
    inner_products(actions, state.sample, scores)
    return argmax_first(scores)


@kernel
def fill_posterior(state: State, actions: Array, scale: float, means: Array, spread: Array) -> None:
    """Fill in the law of the scores ⟨a, θ̃⟩ with θ̃ ~ N(θ̂, scale²·V⁻¹), θ̂ = V⁻¹B: their means, and their spread."""
    estimate(state)
    inner_products(actions, state.theta_hat, means)
    spread_scores(state.chol, actions, scale, spread)
