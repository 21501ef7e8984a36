"""One sweep of data augmentation: which open rounds will convert, and how long delays are.

Only open rounds that have not converted are latent. Given θ̃ and the law f of in-window delays, such a round of age g
converts later with probability p(1 − F(g))/(1 − pF(g)), p = ⟨A_s, θ̃⟩; where it does, its delay has the law f beyond g;
and given all delays, f is Dirichlet. Delays are counted in the bins of `core.delay_curve`, and f has mass, as
there, in those that the reference round's age covers.
"""

import math

import numpy as np

from latecomer.core.conversions import is_delay_known
from latecomer.core.delay_curve import BINS, bin_edges, reference_round
from latecomer.core.forgetting import weight_at
from latecomer.core.jit import kernel
from latecomer.core.ring import is_closed, is_closing, slot_of, stamp_of
from latecomer.core.rng import gamma, uniform
from latecomer.core.state import ROUNDS_PER_BLOCK, ExtraFields, Field, FieldKind, Ring, State, number_field

PRIOR_DELAYS = 2.0
"""The weight of the prior of f, in conversions, spread evenly over the bins that f has mass in."""


def imputation_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """Return the fields that impute conversions; the algorithm needs arrival times."""
    return {
        "edges": Field(bin_edges(span), FieldKind.BIN_EDGES),
        "curve": Field(np.ones(BINS + 1), FieldKind.DELAY_CURVE),  # F before e_j, as sampled last
        "closed_delays": Field(np.zeros(BINS)),  # delays of closed rounds in each bin
        "delays": Field(np.zeros(BINS)),  # delays of all rounds in each bin, those of open ones observed or imputed
        "imputed": Field(np.zeros(dim)),  # Σ A_s of the rounds that will convert, as imputed last
        "imputed_count": number_field(),
        "theta_tilde": Field(np.zeros(dim)),  # the sweep starts where the last one ended
        "current_stamp": number_field(np.int64),  # of the decision being made
        "seed": number_field(np.uint64),
    }


@kernel
def bin_of(state: State, delay: int) -> int:
    """Return the bin of a delay inside the window."""
    low, high = 0, BINS
    while high - low > 1:
        middle = (low + high) // 2
        if state.edges[middle] <= delay:
            low = middle
        else:
            high = middle
    return low


@kernel
def keep_closing_delays(state: State, ring: Ring, now: int) -> None:
    """Count the delays of rounds that close at `now`, which are known for good."""
    state.current_stamp = now
    round = state.oldest
    while is_closing(state, ring, round, now):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        if is_delay_known(block, lane):
            state.closed_delays[bin_of(state, block.arrival[lane] - block.stamp[lane])] += 1.0
        round += 1


@kernel
def keep_closed_delay(state: State, delay: int) -> None:
    """Count the delay of a round that has closed; none where it is −1."""
    if delay >= 0:
        state.closed_delays[bin_of(state, delay)] += 1.0


@kernel
def impute(state: State, ring: Ring) -> None:
    """Sample, for every open round that has not converted, whether it will and when. O(m·d)."""
    dim = state.B.shape[0]
    for i in range(dim):
        state.imputed[i] = 0.0
    for j in range(BINS):
        state.delays[j] = state.closed_delays[j]
    state.imputed_count = 0.0
    for round in range(state.oldest, state.rounds + 1):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        if is_closed(state, block.stamp[lane], state.current_stamp):
            continue
        if is_delay_known(block, lane):
            state.delays[bin_of(state, block.arrival[lane] - block.stamp[lane])] += 1.0
        elif math.isnan(block.credit[lane]):
            chance = 0.0
            for i in range(dim):
                chance += block.action[i, lane] * state.theta_tilde[i]
            chance = min(max(chance, 0.0), 1.0)
            age = state.current_stamp - block.stamp[lane]
            j = bin_of(state, age)
            width = state.edges[j + 1] - state.edges[j]
            matured = state.curve[j] + (state.curve[j + 1] - state.curve[j]) * (age - state.edges[j]) / width
            if uniform(state) * (1.0 - chance * matured) < chance * (1.0 - matured):
                beyond = matured + uniform(state) * (1.0 - matured)
                while j < BINS - 1 and state.curve[j + 1] < beyond:
                    j += 1
                state.delays[j] += 1.0
                weight = weight_at(state, block.stamp[lane])
                state.imputed_count += weight
                for i in range(dim):
                    state.imputed[i] += weight * block.action[i, lane] if state.forgets else block.action[i, lane]


@kernel
def _covered_bins(state: State, ring: Ring) -> int:
    """Count the bins that the reference round's age covers: all, once it has closed."""
    reference = reference_round(state.rounds)
    if reference < state.oldest:
        return BINS
    covered = 0
    if reference <= state.rounds:
        age = state.current_stamp - stamp_of(state, ring, reference)
        while covered < BINS and state.edges[covered + 1] <= age:
            covered += 1
    return covered


@kernel
def sample_delay_law(state: State, ring: Ring) -> None:
    """Sample F ~ Dirichlet, given all delays, over the bins that the reference round covers; F is 1 beyond them."""
    covered = _covered_bins(state, ring)
    total = 0.0
    for j in range(covered):
        state.curve[j] = total
        share = (state.edges[j + 1] - state.edges[j]) / state.edges[covered]
        total += gamma(state, PRIOR_DELAYS * share + state.delays[j]) if share > 0.0 else 0.0
    for j in range(covered):
        state.curve[j] /= total
    for j in range(covered, BINS + 1):
        state.curve[j] = 1.0
