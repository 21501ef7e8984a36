"""The sums of recent rounds, apart from those of older ones: rounds in buckets by the stamps of their decisions.

A bucket has its rounds' parts of V, G, B, Σ w_s F̂_m(age_s) A_s and of the counts; a late conversion, a round that
matures and a correction go to the bucket of their decision. So the sums over all rounds since a bucket's start
are known for each start. Buckets of neighbouring ages are merged so that these ages are about a geometric sequence.
"""

import numpy as np

from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.state import UNSTAMPED, Array, ExtraFields, Field, State, number_field, scratch_field

DETECTS = 2
"""The value of `forgets` of a state that has buckets."""

BUCKETS = 32
UNUSED = np.iinfo(np.int64).max
"""The start of a bucket that is not there."""

LEAST_SIZE = 4.0
"""Rounds of the smallest bucket: d/2 where that is more, and a part in `FINEST` of all rounds where that is."""
FINEST = 256.0

RATIO = 1.5
"""Two neighbours become one bucket where the rounds since the first's start are at most so many times those after."""


def bucket_fields(dim: int) -> ExtraFields:
    """Return the fields of a state that detects changes."""
    return {
        "since": Field(np.array(UNSTAMPED)),  # rounds with a stamp before it have been dropped
        "changes": number_field(np.int64),  # the number of changes detected
        "suspected": Field(np.array(UNSTAMPED), is_younger=True),  # rounds before it are set aside: in buckets alone
        "bucket_starts": Field(np.full(BUCKETS, UNUSED)),  # the least stamp of a bucket's rounds; they rise
        "bucket_rounds": Field(np.zeros(BUCKETS)),  # Σ w_s
        "bucket_matured": Field(np.zeros(BUCKETS)),  # Σ w_s F̂_m(age_s)
        "bucket_credited": Field(np.zeros(BUCKETS)),  # Σ w_s Y_s
        "bucket_due": Field(np.zeros((BUCKETS, dim))),  # Σ w_s F̂_m(age_s) A_s
        "bucket_B": Field(np.zeros((BUCKETS, dim))),  # Σ w_s Y_s A_s
        "bucket_gram": Field(np.zeros((BUCKETS, dim, dim))),  # Σ w_s F̂_m(age_s) A_sA_sᵀ, its upper triangle
        "bucket_V": Field(np.zeros((BUCKETS, dim, dim))),  # Σ w_s A_sA_sᵀ
        "recent_due": scratch_field(dim),  # sums over the rounds since a start
        "recent_B": scratch_field(dim),
        "recent_gram": scratch_field(dim, dim),
        "all_B": scratch_field(dim),  # sums over all rounds that were not dropped
        "all_gram": scratch_field(dim, dim),
        "earlier_gram": scratch_field(dim, dim),  # G without the recent rounds
        "earlier_factor": scratch_field(dim, dim),  # and its factor
        "model_gram": scratch_field(dim, dim),  # the precision of θ where a change is supposed or not,
        "model_factor": scratch_field(dim, dim),  # and its factor
    }


@kernel
def bucket_of(state: State, stamp: int) -> int:
    """Return the bucket of a round of this stamp; −1 where it was dropped."""
    bucket = BUCKETS - 1
    while bucket >= 0 and state.bucket_starts[bucket] > stamp:
        bucket -= 1
    return bucket


@kernel
def first_counted(state: State) -> int:
    """Return the first bucket that is not set aside."""
    return max(0, bucket_of(state, state.suspected))


@kernel
def has_changed(state: State) -> bool:
    """Tell whether a change is suspected, or one was detected."""
    if state.forgets == DETECTS:
        return bool(state.suspected != UNSTAMPED or state.changes > 0)
    return False


@kernel
def newest_bucket(state: State) -> int:
    """Return the last bucket that is there; −1 where there is none."""
    return bucket_of(state, UNUSED - 1)


@kernel_noinline
def add_to_bucket(state: State, action: Array, stamp: int) -> None:
    """Add a round that was just played to its bucket."""
    bucket = bucket_of(state, stamp)
    if bucket >= 0:
        state.bucket_rounds[bucket] += 1.0
        for i in range(action.shape[0]):
            for j in range(action.shape[0]):
                state.bucket_V[bucket, i, j] += action[i] * action[j]


@kernel_noinline
def mature_in_bucket(state: State, stamp: int, weight: float) -> None:
    """Add a part of a round's maturity to its bucket; its action is in state.u."""
    bucket, action = bucket_of(state, stamp), state.u
    if bucket >= 0:
        state.bucket_matured[bucket] += weight
        for i in range(action.shape[0]):
            weighted = weight * action[i]
            state.bucket_due[bucket, i] += weighted
            for j in range(i, action.shape[0]):
                state.bucket_gram[bucket, i, j] += weighted * action[j]


@kernel_noinline
def scale_buckets(state: State, factor: float) -> None:
    """Multiply all weights in the buckets by a factor."""
    dim = state.B.shape[0]
    for bucket in range(newest_bucket(state) + 1):
        state.bucket_rounds[bucket] *= factor
        state.bucket_matured[bucket] *= factor
        state.bucket_credited[bucket] *= factor
        for i in range(dim):
            state.bucket_due[bucket, i] *= factor
            state.bucket_B[bucket, i] *= factor
            for j in range(dim):
                state.bucket_gram[bucket, i, j] *= factor
                state.bucket_V[bucket, i, j] *= factor


@kernel
def _move_bucket(state: State, source: int, target: int, keep: float) -> None:
    """Write a bucket's sums over another's, or add them where `keep` is 1."""
    dim = state.B.shape[0]
    state.bucket_rounds[target] = keep * state.bucket_rounds[target] + state.bucket_rounds[source]
    state.bucket_matured[target] = keep * state.bucket_matured[target] + state.bucket_matured[source]
    state.bucket_credited[target] = keep * state.bucket_credited[target] + state.bucket_credited[source]
    for i in range(dim):
        state.bucket_due[target, i] = keep * state.bucket_due[target, i] + state.bucket_due[source, i]
        state.bucket_B[target, i] = keep * state.bucket_B[target, i] + state.bucket_B[source, i]
        for j in range(dim):
            state.bucket_gram[target, i, j] = keep * state.bucket_gram[target, i, j] + state.bucket_gram[source, i, j]
            state.bucket_V[target, i, j] = keep * state.bucket_V[target, i, j] + state.bucket_V[source, i, j]


@kernel
def clear_bucket(state: State, bucket: int, start: int) -> None:
    """Make a bucket empty, with another start."""
    dim = state.B.shape[0]
    state.bucket_starts[bucket] = start
    state.bucket_rounds[bucket] = 0.0
    state.bucket_matured[bucket] = 0.0
    state.bucket_credited[bucket] = 0.0
    for i in range(dim):
        state.bucket_due[bucket, i] = 0.0
        state.bucket_B[bucket, i] = 0.0
        for j in range(dim):
            state.bucket_gram[bucket, i, j] = 0.0
            state.bucket_V[bucket, i, j] = 0.0


@kernel_noinline
def shift_buckets(state: State, first: int, by: int) -> None:
    """Move the buckets from `first` on down by so many places, over those that are there."""
    newest = newest_bucket(state)
    for bucket in range(first, newest + 1):
        _move_bucket(state, bucket, bucket - by, 0.0)
        state.bucket_starts[bucket - by] = state.bucket_starts[bucket]
    for bucket in range(newest + 1 - by, newest + 1):
        clear_bucket(state, bucket, UNUSED)


@kernel_noinline
def merge_into_older(state: State, bucket: int) -> None:
    """Add a bucket to the one before it."""
    _move_bucket(state, bucket, bucket - 1, 1.0)
    shift_buckets(state, bucket + 1, 1)


@kernel_noinline
def merge_buckets(state: State) -> None:
    """Merge neighbours of about the same age; leave room for one bucket more."""
    newest = newest_bucket(state)
    after, bucket = state.bucket_rounds[newest], newest - 1  # the rounds after the bucket
    while bucket >= 1:
        here = state.bucket_rounds[bucket]
        counts = state.bucket_starts[bucket] != state.suspected  # else it stays apart from what is set aside
        if counts and after + here + state.bucket_rounds[bucket - 1] <= RATIO * after:
            merge_into_older(state, bucket)
        else:
            after += here
        bucket -= 1
    if newest_bucket(state) == BUCKETS - 1:
        merge_into_older(state, 2 if state.bucket_starts[1] == state.suspected else 1)


@kernel
def is_bucket_full(state: State, bucket: int) -> bool:
    """Tell whether a bucket has as many rounds as the smallest may have."""
    least = max(LEAST_SIZE, 0.5 * state.B.shape[0], state.weight_sum / FINEST)
    return bool(state.bucket_rounds[bucket] >= least)
