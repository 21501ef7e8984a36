"""Detection of changes in θ: what is older than a change is dropped at once. A heuristic.

Of the rounds since a bucket's start c, of weight n = Σ w_s, E = ⟨u, θ̂_c⟩ conversions are expected by now, where
u = Σ w_s F̂_m(age_s) A_s, and θ̂_c = G_c⁻¹B_c is the estimate from the rounds before c alone. S = Σ w_s Y_s have come.
With y = S/n and q = E/n,

    n·kl(y, q)·v/(v + κ·v̂·‖u‖² in G_c⁻¹),    v = nq(1 − q),

is the log-likelihood ratio of another rate, less what θ̂_c may be off by. κ = 3 and not 1, since a policy plays what
its errors favour. There is a change where y < q and the statistic exceeds ln(H/n) + ln(1/α) for any c, H being the
number of rounds in a half-life: changes that need n rounds to be seen can be looked for H/n times in it. The c that
exceeds it by most is taken for the change, and the state becomes that of a policy that began there. It is tested
whenever a bucket is full.

What the policy does not play it does not test: that something else has become better is found by exploring, which
forgetting keeps up.
"""

import math

from latecomer.core.age_buckets import (
    clear_bucket,
    is_bucket_full,
    merge_buckets,
    newest_bucket,
    shift_buckets,
)
from latecomer.core.forgetting import weight_at
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.linalg.cholesky import factorise, solve_upper, solve_upper_transposed
from latecomer.core.maturity import conversion_rate
from latecomer.core.rates import bernoulli_variance
from latecomer.core.ridge_statistics import renew_inverse
from latecomer.core.state import State

UNCERTAINTY = 3.0
"""κ: times that the variance of the expected conversions counts."""

LARGEST_SHARE = 0.999
"""The largest q."""


@kernel
def kl_divergence(y: float, q: float) -> float:
    """Return y·ln(y/q) + (1 − y)·ln((1 − y)/(1 − q)) of 0 ≤ y < q < 1."""
    rest = (1.0 - y) * math.log((1.0 - y) / (1.0 - q))
    return rest + y * math.log(y / q) if y > 0.0 else rest


@kernel
def _add_recent(state: State, bucket: int) -> None:
    """Add a bucket to the sums over the recent rounds."""
    dim = state.B.shape[0]
    for i in range(dim):
        state.recent_due[i] += state.bucket_due[bucket, i]
        state.recent_B[i] += state.bucket_B[bucket, i]
        for j in range(i, dim):
            state.recent_gram[i, j] += state.bucket_gram[bucket, i, j]


@kernel_noinline
def _find_statistic(state: State, rounds: float, credited: float) -> float:
    """Return the statistic of the recent rounds against those before; 0 where no fewer converted than expected."""
    dim, expected, norm = state.B.shape[0], 0.0, 0.0
    for i in range(dim):
        state.theta_hat[i] = state.B[i] - state.recent_B[i]
        state.u[i] = state.recent_due[i]
        for j in range(i, dim):
            state.earlier_gram[i, j] = state.gram[i, j] - state.recent_gram[i, j]
    factorise(state.earlier_gram, 0.0, state.ridge, 1.0, state.earlier_factor)
    solve_upper_transposed(state.earlier_factor, state.theta_hat)
    solve_upper(state.earlier_factor, state.theta_hat)
    solve_upper_transposed(state.earlier_factor, state.u)
    for i in range(dim):
        expected += state.recent_due[i] * state.theta_hat[i]
        norm += state.u[i] * state.u[i]
    share, found = min(expected / rounds, LARGEST_SHARE), credited / rounds
    if not 0.0 <= found < share:
        return 0.0
    variance = rounds * share * (1.0 - share)
    doubt = UNCERTAINTY * bernoulli_variance(conversion_rate(state)) * norm
    return rounds * kl_divergence(found, share) * variance / (variance + doubt)


@kernel
def rounds_in_half_life(state: State) -> float:
    """Estimate the number of rounds in a half-life from their weights, as if they had come evenly."""
    return float(math.log(2.0) * state.weight_sum / max(1.0 - state.advance_weight, state.forget_rate))


@kernel_noinline
def _find_change(state: State, newest: int) -> int:
    """Return the bucket that begins with the likeliest change; 0 where there is none."""
    dim, rounds, credited = state.B.shape[0], 0.0, 0.0
    for i in range(dim):
        state.recent_due[i] = 0.0
        state.recent_B[i] = 0.0
        for j in range(i, dim):
            state.recent_gram[i, j] = 0.0
    change, most, looked_for = 0, 0.0, rounds_in_half_life(state)
    for step in range(newest):
        bucket = newest - step
        _add_recent(state, bucket)
        rounds += state.bucket_rounds[bucket]
        credited += state.bucket_credited[bucket]
        threshold = math.log(max(1.0, looked_for / rounds)) - math.log(state.false_alarms)
        excess = _find_statistic(state, rounds, credited) - threshold
        if excess > most:
            change, most = bucket, excess
    return change


@kernel_noinline
def _drop_before(state: State, first: int) -> None:
    """Become the state of a policy that began with a bucket's rounds."""
    dim = state.B.shape[0]
    shift_buckets(state, first, first)
    state.since = state.bucket_starts[0]
    state.changes += 1
    state.weight_sum, state.matured, state.credited = 0.0, 0.0, 0.0
    state.advance_weight = weight_at(state, state.since)
    for i in range(dim):
        state.B[i] = 0.0
        for j in range(dim):
            state.V[i, j] = state.gram[i, j] = 0.0
        state.V[i, i] = state.gram[i, i] = state.ridge
    for bucket in range(newest_bucket(state) + 1):
        state.weight_sum += state.bucket_rounds[bucket]
        state.matured += state.bucket_matured[bucket]
        state.credited += state.bucket_credited[bucket]
        for i in range(dim):
            state.B[i] += state.bucket_B[bucket, i]
            for j in range(dim):
                state.V[i, j] += state.bucket_V[bucket, i, j]
                if j >= i:
                    state.gram[i, j] += state.bucket_gram[bucket, i, j]
    renew_inverse(state)


@kernel_noinline
def detect_change(state: State, now: int) -> bool:
    """Test the recent rounds where the newest bucket is full, and begin another; return whether there is a change.

    G must be that of `now`, the stamp of the coming decision. Rounds of one stamp share a bucket.
    """
    newest = newest_bucket(state)
    if newest < 0:
        clear_bucket(state, 0, now)
        return False
    if now <= state.now or not is_bucket_full(state, newest):
        return False
    change = _find_change(state, newest)
    if change > 0:
        _drop_before(state, change)
    merge_buckets(state)
    clear_bucket(state, newest_bucket(state) + 1, now)
    return change > 0
