"""Forgetting: every round is weighed by the age of its decision, w_s = 2^(−age/half-life), in V, G and B alike.

A conversion that arrives late joins B with the weight that its decision has by then, so that numerator and denominator
forget together. Weights move in steps of a 64th of the half-life (of a round, where that is longer): all sums are
multiplied by one factor, and V⁻¹ is computed afresh, O(d³) a step. λI does not decay: it is what is believed before
there is evidence, and evidence alone grows old. So V ≥ λI always, no number grows without bound however many rounds
there are, and a direction that is not played for long is explored again, as at first.
"""

import math
from collections.abc import Mapping

import numpy as np

from latecomer.core.age_buckets import DETECTS, bucket_fields
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.ridge_statistics import renew_inverse
from latecomer.core.state import Array, ExtraFields, Field, State, number_field

DETECTION_LIMIT = 32
"""The largest dimension in which changes are detected: every bucket has two matrices."""

STEPS = 64
"""Steps of the weights in a half-life, at most."""


def forgetting_numbers(half_life: int) -> dict[str, float]:
    """Return the numbers of a state that forgets, given the half-life in the unit of stamps."""
    step = max(1, half_life // STEPS)
    return {"forget_step": float(step), "forget_rate": math.log(2.0) * step / half_life}


def forgetting_kind(numbers: Mapping[str, float], dim: int) -> int:
    """Return the value of `forgets`: 0 without a half-life, 1 with one, `DETECTS` where changes are detected too."""
    if "forget_rate" not in numbers:
        return 0
    return DETECTS if numbers.get("false_alarms", 0.0) > 0.0 and dim <= DETECTION_LIMIT else 1


def forgetting_fields(forgets: int, dim: int) -> ExtraFields:
    """Return the fields of a state that forgets, by that value."""
    if forgets == 0:
        return {}
    return {
        "epoch": number_field(np.int64),  # the latest step
        "weight_sum": number_field(),  # Σ w_s
        "advance_weight": Field(np.ones(())),  # the weight of what was given before the first round
        **(bucket_fields(dim) if forgets == DETECTS else {}),
    }


@kernel
def weight_at(state: State, stamp: int) -> float:
    """Return w_s of a round of this stamp, as of the latest step: 1 if nothing is forgotten, 0 if it was dropped."""
    if state.forgets:
        if state.forgets == DETECTS and stamp < state.since:
            return 0.0
        return math.exp(-state.forget_rate * float(state.epoch - stamp // int(state.forget_step)))
    return 1.0


@kernel
def counted_weight(state: State, stamp: int) -> float:
    """Return w_s as `weight_at` does, but 0 while the round is set aside: its weight in G and B."""
    if state.forgets == DETECTS and stamp < state.suspected:
        return 0.0
    return weight_at(state, stamp)


@kernel
def counted_rounds(state: State) -> float:
    """Return Σ w_s over all rounds; their number where nothing is forgotten."""
    return float(state.weight_sum) if state.forgets else float(state.rounds)


@kernel
def weigh_advance(state: State, conversions: float) -> float:
    """Return what conversions count that were given before the first round: they age as rounds do."""
    return conversions * state.advance_weight if state.forgets else conversions


@kernel
def scale_matrix(matrix: Array, factor: float, ridge: float) -> None:
    """Multiply what a matrix has more than λI by a factor."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[0]):
            matrix[i, j] *= factor
        matrix[i, i] += (1.0 - factor) * ridge


@kernel_noinline
def scale_statistics(state: State, factor: float) -> None:
    """Multiply all weights in V and B by a factor, and compute V⁻¹, ln det V and U afresh."""
    scale_matrix(state.V, factor, state.ridge)
    for i in range(state.B.shape[0]):
        state.B[i] *= factor
    state.credited *= factor
    state.weight_sum *= factor
    state.advance_weight *= factor
    renew_inverse(state)


@kernel
def step_factor(state: State, now: int) -> float:
    """Move to the step of `now`; return the factor by which weights have shrunk since the step before."""
    epoch = now // int(state.forget_step)
    passed = epoch - state.epoch if state.rounds > 0 else 0
    if state.rounds == 0 or passed > 0:
        state.epoch = epoch
    return math.exp(-state.forget_rate * float(passed)) if passed > 0 else 1.0
