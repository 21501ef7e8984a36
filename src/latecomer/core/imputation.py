"""One sweep of data augmentation: which open rounds will convert, and how long delays are.

Only open rounds that have not converted are latent. Given θ̃ and the law f of in-window delays, such a round of age g
converts later with probability p(1 − F(g))/(1 − pF(g)), p = ⟨A_s, θ̃⟩; where it does, its delay has the law f beyond g;
and given all delays, f is Dirichlet. Delays live in the bins of `core.curve`, and f, as there, in those that the
reference round's age covers.
"""

import math

import numpy as np

from latecomer.core.delay_curve import BINS, bin_edges, reference_round
from latecomer.core.jit import kernel
from latecomer.core.ring import is_closed, is_delay_known, slot_of
from latecomer.core.rng import gamma, uniform
from latecomer.core.state import ROUNDS_PER_BLOCK, ExtraFields, Ring, State

PRIOR_DELAYS = 2.0
"""Conversions that the prior of f weighs, spread evenly over the bins that f lives in."""


def imputation_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """What a policy keeps to impute."""
    edges = bin_edges(span)
    return {
        "edges": edges,
        "curve": np.ones(BINS + 1),  # F before e_j, as sampled last
        "closed_delays": np.zeros(BINS),  # how many delays of closed rounds lay in each bin
        "delays": np.zeros(BINS),  # the same with open rounds', seen and imputed
        "imputed": np.zeros(dim),  # Σ A_s of the rounds that will convert, as imputed last
        "imputed_count": np.zeros(()),
        "theta_tilde": np.zeros(dim),  # the sweep starts where the last one ended
        "moment": np.zeros((), np.int64),  # the stamp of the decision at hand
        "seed": np.zeros((), np.uint64),
    }


@kernel
def bin_of(state: State, delay: int) -> int:
    """The bin that a delay inside the window lies in."""
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
    """The delays of rounds that close at `now` are known for good."""
    state.moment = now
    for round in range(state.oldest, state.rounds + 1):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        if not is_closed(state, block.stamp[lane], now):
            break
        if is_delay_known(block, lane):
            state.closed_delays[bin_of(state, block.arrival[lane] - block.stamp[lane])] += 1.0


@kernel
def impute(state: State, ring: Ring) -> None:
    """Draw, for every open round that has not converted, whether it will and when; O(m d)."""
    dim = state.B.shape[0]
    for i in range(dim):
        state.imputed[i] = 0.0
    for j in range(BINS):
        state.delays[j] = state.closed_delays[j]
    state.imputed_count = 0.0
    for round in range(state.oldest, state.rounds + 1):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        if is_closed(state, block.stamp[lane], state.moment):
            continue
        if is_delay_known(block, lane):
            state.delays[bin_of(state, block.arrival[lane] - block.stamp[lane])] += 1.0
        elif math.isnan(block.credit[lane]):
            chance = 0.0
            for i in range(dim):
                chance += block.action[i, lane] * state.theta_tilde[i]
            chance = min(max(chance, 0.0), 1.0)
            age = state.moment - block.stamp[lane]
            j = bin_of(state, age)
            width = state.edges[j + 1] - state.edges[j]
            matured = state.curve[j] + (state.curve[j + 1] - state.curve[j]) * (age - state.edges[j]) / width
            if uniform(state) * (1.0 - chance * matured) < chance * (1.0 - matured):
                beyond = matured + uniform(state) * (1.0 - matured)
                while j < BINS - 1 and state.curve[j + 1] < beyond:
                    j += 1
                state.delays[j] += 1.0
                state.imputed_count += 1.0
                for i in range(dim):
                    state.imputed[i] += block.action[i, lane]


@kernel
def _covered_bins(state: State, ring: Ring) -> int:
    """Count the bins that the reference round's age covers: all, once it has closed."""
    reference = reference_round(state.rounds)
    if reference < state.oldest:
        return BINS
    covered = 0
    if reference <= state.rounds:
        slot = slot_of(state, ring, reference)
        age = state.moment - ring[slot // ROUNDS_PER_BLOCK].stamp[slot % ROUNDS_PER_BLOCK]
        while covered < BINS and state.edges[covered + 1] <= age:
            covered += 1
    return covered


@kernel
def redraw_law(state: State, ring: Ring) -> None:
    """F ~ Dirichlet, given all delays in the bins that it lives in; 1 beyond them."""
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
