"""Detection of changes in θ: what is older than a change is set aside, then dropped. A heuristic.

Whenever a bucket is full, recent rounds are tested against those before, for the start c of every bucket
(`core.change_statistics`). With n the weight of the rounds since c and H the number of rounds in a half-life, a change
at c has the *excess*: the statistic less ln(H/n), since changes that need n rounds to be seen can be looked for H/n
times in a half-life.

- Where the shortfall's excess is more than `SUSPICION`, for the c that has most, a change is suspected. The rounds
  before c are set aside: θ̂ and the mean rate are those of a policy that began at c. V, and with it `optimism`, stays.
- From then on the policy plays otherwise, and the contrast decides. The suspicion moves to another c whose excess is
  larger by `ADVANTAGE`; below `RELIEF` the rounds that were set aside count again, as if nothing had happened.
- Where either excess is more than ln(1/α), what is older than c is dropped for good, from V too; and so it is where a
  suspicion has lasted until the rounds since c weigh `LASTING` of those that are set aside.

A conversion, a revocation or the maturity of a round that is set aside goes to its bucket, and counts again with it.
What the policy does not play it does not test: that something else has become better is found by exploring, which
forgetting keeps up.
"""

import math

from latecomer.core.age_buckets import (
    clear_bucket,
    first_counted,
    is_bucket_full,
    merge_buckets,
    newest_bucket,
    shift_buckets,
)
from latecomer.core.change_statistics import add_recent, clear_recent, estimate_earlier, find_contrast, find_shortfall
from latecomer.core.forgetting import weight_at
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.rates import estimate_rate
from latecomer.core.ridge_statistics import renew_inverse
from latecomer.core.state import UNSTAMPED, State

SUSPICION, RELIEF = 1.0, -1.0
"""The excess of a shortfall above which a change is suspected, and that of its contrast below which it no longer is."""

ADVANTAGE = 1.0
"""The excess of the contrast by which a suspicion moves to another start."""

LASTING = 0.2
"""The share of the rounds set aside that those since a suspected change weigh when it is taken for one."""


@kernel
def rounds_in_half_life(state: State) -> float:
    """Estimate the number of rounds in a half-life from their weights, as if they had come evenly."""
    return float(math.log(2.0) * state.weight_sum / max(1.0 - state.advance_weight, state.forget_rate))


@kernel_noinline
def _sum_all(state: State) -> tuple[float, float]:
    """Fill in the sums over all rounds, those set aside included; return Σ w_s F̂_m(age_s) and Σ w_s Y_s."""
    dim, matured, credited = state.B.shape[0], state.matured, state.credited
    for i in range(dim):
        state.all_B[i] = state.B[i]
        for j in range(i, dim):
            state.all_gram[i, j] = state.gram[i, j]
    for bucket in range(first_counted(state)):
        matured += state.bucket_matured[bucket]
        credited += state.bucket_credited[bucket]
        for i in range(dim):
            state.all_B[i] += state.bucket_B[bucket, i]
            for j in range(i, dim):
                state.all_gram[i, j] += state.bucket_gram[bucket, i, j]
    return matured, credited


@kernel_noinline
def _find_shortest(state: State, newest: int, rate: float) -> tuple[int, float]:
    """Return the bucket that begins with the likeliest shortfall, and its excess; 0 where none is above 0."""
    found, most, looked_for = 0, 0.0, rounds_in_half_life(state)
    rounds, credited = 0.0, 0.0
    clear_recent(state)
    for step in range(newest):
        bucket = newest - step
        add_recent(state, bucket)
        rounds += state.bucket_rounds[bucket]
        credited += state.bucket_credited[bucket]
        estimate_earlier(state)
        excess = find_shortfall(state, rounds, credited, rate) - math.log(max(1.0, looked_for / rounds))
        if excess > most:
            found, most = bucket, excess
    return found, most


@kernel_noinline
def _find_contrasts(state: State, newest: int, all_matured: float, all_credited: float) -> tuple[int, float, float]:
    """Return the bucket that begins with the largest contrast, its excess, and that of the suspected change."""
    suspected, looked_for = first_counted(state), rounds_in_half_life(state)
    rounds, matured, credited = 0.0, 0.0, 0.0
    found, most, own = suspected, -math.inf, -math.inf
    clear_recent(state)
    for step in range(newest):
        bucket = newest - step
        add_recent(state, bucket)
        rounds += state.bucket_rounds[bucket]
        matured += state.bucket_matured[bucket]
        credited += state.bucket_credited[bucket]
        if matured >= 0.5 * state.B.shape[0]:
            rate = estimate_rate(all_credited, all_matured)
            earlier_rate = estimate_rate(all_credited - credited, all_matured - matured)
            estimate_earlier(state)
            contrast = find_contrast(state, rate, earlier_rate, matured / rounds)
            excess = contrast - math.log(max(1.0, looked_for / rounds))
            if excess > most:
                found, most = bucket, excess
            if bucket == suspected:
                own = excess
    return found, most, own


@kernel_noinline
def _count_from(state: State, first: int) -> None:
    """Make G, B and the mean rate those of a bucket's rounds and of later ones; set earlier ones aside."""
    dim = state.B.shape[0]
    state.suspected = state.bucket_starts[first] if first > 0 else UNSTAMPED
    state.matured, state.credited = 0.0, 0.0
    for i in range(dim):
        state.B[i] = 0.0
        for j in range(dim):
            state.gram[i, j] = 0.0
        state.gram[i, i] = state.ridge
    for bucket in range(first, newest_bucket(state) + 1):
        state.matured += state.bucket_matured[bucket]
        state.credited += state.bucket_credited[bucket]
        for i in range(dim):
            state.B[i] += state.bucket_B[bucket, i]
            for j in range(i, dim):
                state.gram[i, j] += state.bucket_gram[bucket, i, j]


@kernel_noinline
def _drop_before(state: State, first: int) -> None:
    """Become the state of a policy that began with a bucket's rounds."""
    dim = state.B.shape[0]
    shift_buckets(state, first, first)
    state.since = state.bucket_starts[0]
    state.changes += 1
    state.weight_sum = 0.0
    state.advance_weight = weight_at(state, state.since)
    for i in range(dim):
        for j in range(dim):
            state.V[i, j] = 0.0
        state.V[i, i] = state.ridge
    for bucket in range(newest_bucket(state) + 1):
        state.weight_sum += state.bucket_rounds[bucket]
        for i in range(dim):
            for j in range(dim):
                state.V[i, j] += state.bucket_V[bucket, i, j]
    renew_inverse(state)
    _count_from(state, 0)


@kernel
def _has_lasted(state: State, newest: int) -> bool:
    """Tell whether the rounds since a suspected change weigh `LASTING` of those that are set aside."""
    first, aside, since = first_counted(state), 0.0, 0.0
    for bucket in range(first):
        aside += state.bucket_rounds[bucket]
    for bucket in range(first, newest + 1):
        since += state.bucket_rounds[bucket]
    return bool(since > LASTING * aside)


@kernel_noinline
def _follow_suspicion(state: State, newest: int, matured: float, credited: float) -> bool:
    """Move, confirm or give up a suspicion; return whether what counts has changed."""
    found, most, own = _find_contrasts(state, newest, matured, credited)
    moves = most > own + ADVANTAGE
    if moves:
        own = most
        _count_from(state, found)
    if own < RELIEF:
        _count_from(state, 0)
        return True
    if own > -math.log(state.false_alarms) or _has_lasted(state, newest):
        _drop_before(state, first_counted(state))
        return True
    return moves


@kernel_noinline
def _judge(state: State, newest: int) -> bool:
    """Test for a change; return whether what counts has changed."""
    matured, credited = _sum_all(state)
    found, excess = _find_shortest(state, newest, estimate_rate(credited, matured))
    if excess > -math.log(state.false_alarms):
        _drop_before(state, found)
        return True
    if state.suspected != UNSTAMPED:
        return _follow_suspicion(state, newest, matured, credited)
    if excess > SUSPICION:
        _count_from(state, found)
        return True
    return False


@kernel_noinline
def detect_change(state: State, now: int) -> bool:
    """Test the recent rounds where the newest bucket is full, and begin another; return whether what counts changed.

    G must be that of `now`, the stamp of the coming decision. Rounds of one stamp share a bucket.
    """
    newest = newest_bucket(state)
    if newest < 0:
        clear_bucket(state, 0, now)
        return False
    if now <= state.now or not is_bucket_full(state, newest):
        return False
    changed = _judge(state, newest)
    merge_buckets(state)
    clear_bucket(state, newest_bucket(state) + 1, now)
    return changed
