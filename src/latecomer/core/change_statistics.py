"""Statistics of a change in θ at the start of a bucket: recent rounds against those before. Heuristics.

Of the rounds since a start c, of weight n = Σ w_s, E = ⟨u, θ̂_c⟩ conversions are expected by now, where
u = Σ w_s F̂_m(age_s) A_s, and θ̂_c = G_c⁻¹B_c is the estimate from the rounds before c alone. S = Σ w_s Y_s have come.

`find_shortfall` asks whether what was played converts less than before. With y = S/n and q = E/n,

    n·kl(y, q)·v/(v + κ·v̂·‖u‖² in G_c⁻¹),    v = nq(1 − q),

is the log-likelihood ratio of another rate, less what θ̂_c may be off by. κ = 3 and not 1, since a policy plays what
its errors favour.

`find_contrast` asks which explains the recent rounds better, in all directions: θ as before, θ ~ N(θ̂_c, κv̂G_c⁻¹), or
another one, θ ~ N(0, v̂P⁻¹) with P = max(1, 2(1 − p̂)/p̂)·I, p̂ of the rounds before c, so that rates vary by about
their own size. It is the logarithm of the Bayes factor, with B_r and G_r the sums of the recent rounds, r = B_r − G_rμ,

    ln p(B_r) = ½ ln(det P/det(P + G_r)) + (‖r‖² in (P + G_r)⁻¹ + ⟨μ, B_r + r⟩)/2v + a constant,

for θ ~ N(μ, vP⁻¹); v = p̂(1 − p̂·Σ w_s F̂_m(age_s)/n), for a conversion that is hardly due is nearly Poisson.
"""

import math

from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.linalg.cholesky import factorise, solve_upper, solve_upper_transposed
from latecomer.core.rates import bernoulli_variance
from latecomer.core.state import State

UNCERTAINTY = 3.0
"""κ: times that the variance of the expected conversions counts."""

LARGEST_SHARE = 0.999
"""The largest q."""

NARROWNESS = 2.0
"""P·p̂/(1 − p̂): how narrow the prior of another θ is about 0."""


@kernel
def kl_divergence(y: float, q: float) -> float:
    """Return y·ln(y/q) + (1 − y)·ln((1 − y)/(1 − q)) of 0 ≤ y < q < 1."""
    rest = (1.0 - y) * math.log((1.0 - y) / (1.0 - q))
    return rest + y * math.log(y / q) if y > 0.0 else rest


@kernel_noinline
def clear_recent(state: State) -> None:
    """Make the sums over the recent rounds those of none."""
    dim = state.B.shape[0]
    for i in range(dim):
        state.recent_due[i] = 0.0
        state.recent_B[i] = 0.0
        for j in range(i, dim):
            state.recent_gram[i, j] = 0.0


@kernel_noinline
def add_recent(state: State, bucket: int) -> None:
    """Add a bucket to the sums over the recent rounds."""
    dim = state.B.shape[0]
    for i in range(dim):
        state.recent_due[i] += state.bucket_due[bucket, i]
        state.recent_B[i] += state.bucket_B[bucket, i]
        for j in range(i, dim):
            state.recent_gram[i, j] += state.bucket_gram[bucket, i, j]


@kernel_noinline
def estimate_earlier(state: State) -> None:
    """Fill state.theta_hat with θ̂_c, and state.earlier_factor with the factor of G_c; all sums are filled in."""
    dim = state.B.shape[0]
    for i in range(dim):
        state.theta_hat[i] = state.all_B[i] - state.recent_B[i]
        for j in range(i, dim):
            state.earlier_gram[i, j] = state.all_gram[i, j] - state.recent_gram[i, j]
    factorise(state.earlier_gram, 0.0, state.ridge, 1.0, state.earlier_factor)
    solve_upper_transposed(state.earlier_factor, state.theta_hat)
    solve_upper(state.earlier_factor, state.theta_hat)


@kernel_noinline
def find_shortfall(state: State, rounds: float, credited: float, rate: float) -> float:
    """Return the statistic of fewer conversions than expected; 0 where there are no fewer. After `estimate_earlier`."""
    dim, expected, norm = state.B.shape[0], 0.0, 0.0
    for i in range(dim):
        state.u[i] = state.recent_due[i]
    solve_upper_transposed(state.earlier_factor, state.u)
    for i in range(dim):
        expected += state.recent_due[i] * state.theta_hat[i]
        norm += state.u[i] * state.u[i]
    share, found = min(expected / rounds, LARGEST_SHARE), credited / rounds
    if not 0.0 <= found < share:
        return 0.0
    variance = rounds * share * (1.0 - share)
    doubt = UNCERTAINTY * bernoulli_variance(rate) * norm
    return rounds * kl_divergence(found, share) * variance / (variance + doubt)


@kernel_noinline
def _log_evidence(state: State, log_det: float, variance: float) -> float:
    """Return ln p(B_r) where θ ~ N(μ, vP⁻¹): μ is in theta_hat, P in model_gram, ln det P is given."""
    dim, inner, square = state.B.shape[0], 0.0, 0.0
    for i in range(dim):
        rest = state.recent_B[i]
        for j in range(dim):
            rest -= state.recent_gram[min(i, j), max(i, j)] * state.theta_hat[j]
        state.u[i] = rest
        inner += state.theta_hat[i] * (state.recent_B[i] + rest)
        for j in range(i, dim):
            state.model_gram[i, j] += state.recent_gram[i, j]
    factorise(state.model_gram, 0.0, state.ridge / UNCERTAINTY, 1.0, state.model_factor)
    solve_upper_transposed(state.model_factor, state.u)
    for i in range(dim):
        square += state.u[i] * state.u[i]
        log_det -= 2.0 * math.log(state.model_factor[i, i])
    return 0.5 * log_det + 0.5 * (square + inner) / variance


@kernel_noinline
def find_contrast(state: State, rate: float, earlier_rate: float, due_share: float) -> float:
    """Return the log of the Bayes factor of another θ, in place of θ̂_c in state.theta_hat; after `estimate_earlier`.

    `rate` is p̂ over all rounds, `earlier_rate` over those before c, `due_share` Σ w_s F̂_m(age_s)/n of the recent ones.
    """
    dim, variance, log_det = state.B.shape[0], rate * (1.0 - rate * due_share), 0.0
    for i in range(dim):
        log_det += 2.0 * math.log(state.earlier_factor[i, i]) - math.log(UNCERTAINTY)
        for j in range(i, dim):
            state.model_gram[i, j] = state.earlier_gram[i, j] / UNCERTAINTY
    unchanged = _log_evidence(state, log_det, variance)
    precision = max(1.0, NARROWNESS * (1.0 - earlier_rate) / earlier_rate)
    for i in range(dim):
        state.theta_hat[i] = 0.0
        for j in range(i, dim):
            state.model_gram[i, j] = precision if i == j else 0.0
    return _log_evidence(state, dim * math.log(precision), variance) - unchanged
