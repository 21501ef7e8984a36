"""ImputedLinTS: sampling what is still on its way along with θ. A heuristic, Bayesian in spirit.

Each round, one sweep of Gibbs sampling, from where the last one ended: which open rounds will convert, given θ̃ and the
delay law; the delay law, given all delays; and θ̃ ~ N(V⁻¹(B + Σ_open Z_sA_s), c²·v̂·V⁻¹), given those conversions. Plays
argmax ⟨a, θ̃⟩. O(m·d) a round.
"""

import math

from latecomer.core.imputation import imputation_fields, impute, keep_closing_delays, redraw_law
from latecomer.core.linalg.products import argmax_first, inner_products, multiply
from latecomer.core.rng import reseed
from latecomer.core.sampling import sample_theta
from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm, nothing_pending, width
from latecomer.policies.base.families import ThompsonPolicy
from latecomer.policies.base.rng import Draw


def settle(state: State, ring: Ring, now: int) -> None:
    """What closes has its delay for good."""
    keep_closing_delays(state, ring, now)


def prepare(state: State, ring: Ring, draws: Array) -> None:
    """One sweep."""
    dim = state.B.shape[0]
    reseed(state, float(draws[dim]))
    impute(state, ring)
    redraw_law(state, ring)
    for i in range(dim):
        state.imputed[i] += state.B[i]
    multiply(state.V_inv, state.imputed, state.theta_hat)
    sample_theta(state, state.exploration * math.sqrt(width(state, 0.0)), draws)
    for i in range(dim):
        state.theta_tilde[i] = state.sample[i]


def variance(state: State, pending: float) -> float:
    """v̂ = p̂(1 − p̂), p̂ = (conversions, imputed ones too, + 1)/(rounds + 2)."""
    rate = min(0.9, (state.credited + state.imputed_count + 1.0) / (state.rounds + 2.0))
    return float(rate * (1.0 - rate))


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃⟩."""
    inner_products(actions, state.theta_tilde, scores)
    return argmax_first(scores)


ALGORITHMS["ImputedLinTS"] = Algorithm(
    choose=choose,
    width=variance,
    pending=nothing_pending,
    settle=settle,
    prepare=prepare,
    draw=Draw.NORMAL_AND_ONE,
    sampled=True,
    extras=imputation_fields,
)


class ImputedLinTS(ThompsonPolicy):
    """Posterior sampling over θ, the delay law and the conversions to come; parameters as in `LinTS`.

    `theta_hat` is V⁻¹B, as if nothing more would come: what it imputes changes with every round.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.ImputedLinTS(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """
