"""ImputedLinTS: sampling the conversions still to come along with θ. A heuristic, after data augmentation.

Each round, one sweep of Gibbs sampling, from where the last one ended: which open rounds will convert, given θ̃ and the
delay law; the delay law, given all delays; and θ̃ ~ N(V⁻¹(B + Σ_open Z_sA_s), c²·v̂·V⁻¹), given those conversions. Plays
argmax ⟨a, θ̃⟩. O(m·d) a round. The paper's sum over open rounds (Vernade et al., ICML 2020) is not needed.
"""

import math

from latecomer.core.forgetting import counted_rounds
from latecomer.core.imputation import (
    imputation_fields,
    impute,
    keep_closed_delay,
    keep_closing_delays,
    sample_delay_law,
)
from latecomer.core.linalg.products import argmax_first, inner_products, multiply
from latecomer.core.rates import bernoulli_variance, estimate_rate
from latecomer.core.rng import reseed
from latecomer.core.sampling import sample_theta, spread_scores
from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import Algorithm, width, zero_pending_width
from latecomer.policies.base.families import ThompsonPolicy
from latecomer.policies.base.rng import Draw


def advance_time(state: State, ring: Ring, now: int) -> None:
    """Count the delays of the rounds that close at `now`."""
    keep_closing_delays(state, ring, now)


def correct_closed_round(state: State, ring: Ring, slot: int, change: float, delay: int) -> None:
    """Count the delay of a conversion that came in the grace; the next sweep has its value in B."""
    keep_closed_delay(state, delay)


def begin_round(state: State, ring: Ring, draws: Array) -> None:
    """Make one sweep of Gibbs sampling."""
    dim = state.B.shape[0]
    reseed(state, float(draws[dim]))
    impute(state, ring)
    sample_delay_law(state, ring)
    for i in range(dim):
        state.imputed[i] += state.B[i]
    multiply(state.V_inv, state.imputed, state.theta_hat)
    sample_theta(state, state.exploration * math.sqrt(width(state, 0.0)), draws)
    for i in range(dim):
        state.theta_tilde[i] = state.sample[i]


def sampling_variance(state: State, pending_width: float) -> float:
    """v̂ at p̂ = (conversions, imputed ones too, + 1)/(rounds + 2)."""
    return bernoulli_variance(estimate_rate(state.credited + state.imputed_count, counted_rounds(state)))


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """Score by ⟨a, θ̃⟩ with the θ̃ that the sweep has sampled, and choose the largest."""
    inner_products(actions, state.theta_tilde, scores)
    return argmax_first(scores)


def posterior(state: State, ring: Ring, actions: Array, means: Array, spread: Array) -> None:
    """The law of the scores, given the conversions that the sweep has imputed."""
    inner_products(actions, state.theta_hat, means)
    spread_scores(state.chol, actions, state.exploration * math.sqrt(width(state, 0.0)), spread)


class ImputedLinTS(ThompsonPolicy):
    """Posterior sampling over θ, the delay law and the conversions to come; parameters as in `LinTS`.

    `theta_hat` is V⁻¹B, as if no more conversions would come: the imputed ones change with every round.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.ImputedLinTS(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """

    algorithm = Algorithm(
        "ImputedLinTS",
        choose=choose,
        width=sampling_variance,
        posterior=posterior,
        pending_width=zero_pending_width,
        advance_time=advance_time,
        correct_closed_round=correct_closed_round,
        begin_round=begin_round,
        draw=Draw.NORMAL_AND_ONE,
        needs_cholesky=True,
        needs_arrival_times=True,
        extra_fields=imputation_fields,
    )
