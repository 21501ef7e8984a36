"""θ̂ shrunk towards θ_0, under which the mean action converts at the mean rate, and by how much.

With θ ~ N(θ_0, σ²I) and noise of variance v̂, the posterior mean is (A + λI)⁻¹(B + λθ_0), A = Σ F̂_m(age_s) A_sA_sᵀ, with
λ = v̂/σ². Of δ = θ̂ − θ_0 and γ = d − λ·tr(A + λI)⁻¹, the number of directions that the data determine, follows MacKay's
estimate λ = v̂γ/‖δ‖² (empirical Bayes). Three changes make a heuristic of it:

    λ/λ_0 = (γ·min(1, (d − 2)/3) + ν)/(λ_0·(d/2)·max δ_i²/v̂ + ν), at least 1.

- Two directions that agree with the prior may do so by chance. As in James and Stein's estimate nothing is shrunk up to
  d = 2; from d = 5 on all γ count.
- A prior that λ is the policy's own ridge λ_0 weighs as much as ν directions. So the ratio is 1 without data,
  and at most s = 1 + d/ν; `shrinkage` is s.
- One feature that matters far more than the rest is evidence against shrinking, which ‖δ‖² would average away.

Where rounds offer the same actions again and again, each action has its own evidence, and the ridge stays λ_0: the
growth is multiplied by `freshness`.

After a change, suspected or detected, θ_0 is 0 and the ridge λ_0. The rounds that count are then of actions that were
chosen for what they converted before it, so their mean rate says little about the mean action.
"""

import math

import numpy as np

from latecomer.core.action_summary import freshness, square_of_sum
from latecomer.core.age_buckets import has_changed
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.maturity import conversion_rate
from latecomer.core.rates import bernoulli_variance
from latecomer.core.state import ExtraFields, Field, State, number_field
from latecomer.core.weighted_gram import DIRECT, gram_half_solve, gram_solve, gram_trace, shift_gram

ENOUGH = 5
"""The least dimension in which agreement with the prior counts in full; with two dimensions it does not count."""

INTERVAL = 16
"""The ridge is estimated again when the number of rounds has grown by one part in so many.

Beyond `DIRECT` dimensions it waits for at least d parts in so many rounds, for the estimate is O(d³).
"""


def shrinkage_fields() -> ExtraFields:
    """Return the fields that shrink the estimate."""
    return {
        "ridge_growth": Field(np.ones(())),  # λ/λ_0
        "ridge_due": number_field(np.int64),  # the number of rounds at which it is estimated again
    }


@kernel
def _prior_scale(state: State) -> float:
    """Return θ_0 over Σ ā_t, where θ_0 = w·p̂·ā/‖ā‖², of norm at most w·p̂·√d; 0 after a change."""
    square = square_of_sum(state)
    if square <= 0.0 or has_changed(state):
        return 0.0
    return float(
        state.prior * conversion_rate(state) * min(state.set_count / square, math.sqrt(state.B.shape[0] / square))
    )


@kernel
def _begin_estimate(state: State) -> float:
    """Fill state.theta_hat with B + λθ_0; return λ − λ_0."""
    ridge, scale = state.ridge_growth * state.ridge, _prior_scale(state)
    for i in range(state.B.shape[0]):
        state.theta_hat[i] = state.B[i] + ridge * scale * state.mean_sum[i]
    return float(ridge - state.ridge)


@kernel
def shrunk_estimate(state: State) -> None:
    """Fill state.theta_hat with (A + λI)⁻¹(B + λθ_0), and state.factor with U."""
    gram_solve(state, _begin_estimate(state))


@kernel
def half_estimate(state: State) -> None:
    """Fill state.theta_hat with U⁻ᵀ(B + λθ_0), of which `sample_from_gram` makes a sample, and state.factor with U."""
    gram_half_solve(state, _begin_estimate(state))


@kernel_noinline
def update_ridge(state: State) -> None:
    """Estimate λ/λ_0 again where it is due; after a change it stays 1."""
    if state.shrinkage <= 1.0 or state.rounds < state.ridge_due or has_changed(state):
        return
    dim, scale = state.B.shape[0], _prior_scale(state)
    state.ridge_due = state.rounds + max(1 + state.rounds // INTERVAL, dim // INTERVAL if dim > DIRECT else 1)
    shrunk_estimate(state)
    determined = dim - state.ridge_growth * state.ridge * gram_trace(state)
    largest = 0.0
    for i in range(dim):
        off = state.theta_hat[i] - scale * state.mean_sum[i]
        largest = max(largest, off * off)
    determined *= min(1.0, max(0.0, (dim - 2.0) / (ENOUGH - 2.0)))
    weight = dim / (state.shrinkage - 1.0)
    variance = bernoulli_variance(conversion_rate(state))
    growth = (determined + weight) / (0.5 * dim * state.ridge * largest / variance + weight)
    state.ridge_growth = 1.0 + freshness(state) * max(0.0, growth - 1.0)
    shift_gram(state, state.ridge_growth * state.ridge - state.ridge)
