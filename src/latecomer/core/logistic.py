"""Delayed logistic regression: P(in-window conversion) = μ(⟨a, β⟩ + β_0), μ(z) = 1/(1 + e^{−z}).

A round of maturity F that has not converted has the loss −ln(1 − Fμ), one that has −ln μ. Closed rounds enter a
quadratic (a Laplace step at the β of that moment) by its precision H and its linear part η; open ones are summed
in every round, in one step of Fisher scoring from the last β: O(m d²). The intercept β_0 is the last entry of β, with a
constant feature 1: linear rates do not vanish where actions do.
"""

import math

import numpy as np

from latecomer.core.delay_curve import bin_from, delay_curve_fields, maturity_in, update_delay_curve
from latecomer.core.jit import kernel
from latecomer.core.linalg.cholesky import factorise, solve_upper, solve_upper_transposed
from latecomer.core.rates import bernoulli_variance
from latecomer.core.ring import is_closed, is_closing, slot_of, window_count
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, ExtraFields, Field, Ring, State, number_field, scratch_field

LONGEST_STEP = 2.0
"""A longer step of Fisher scoring is shortened to this: far from the optimum the quadratic misleads."""

TINY = 1e-300
"""The least probability of no conversion: logits of hundreds would make it 0, and 0/0 is NaN."""


def logistic_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """Return the fields of the logistic model; the algorithm needs arrival times."""
    size = dim + 1
    return {
        **delay_curve_fields(span),
        "precision": Field(np.eye(size) * ridge),  # H, its upper triangle
        "linear": Field(np.zeros(size)),  # η: closed rounds and the prior are ½βᵀHβ − ηᵀβ
        "beta": Field(np.zeros(size)),
        "newton_step": scratch_field(size),
        "gram": Field(np.eye(size) * ridge),  # H and the open rounds, its upper triangle
        "factor": scratch_field(size, size),
        "current_stamp": number_field(np.int64),  # of the decision being made
    }


@kernel
def _feature(state: State, ring: Ring, slot: int, i: int) -> float:
    return float(ring[slot // ROUNDS_PER_BLOCK].action[i, slot % ROUNDS_PER_BLOCK]) if i < state.B.shape[0] else 1.0


@kernel
def _logit(state: State, ring: Ring, slot: int) -> float:
    z = 0.0
    for i in range(state.beta.shape[0]):
        z += _feature(state, ring, slot, i) * state.beta[i]
    return z


@kernel
def _add(state: State, ring: Ring, slot: int, weight: float, out: Array) -> None:
    for i in range(out.shape[0]):
        out[i] += weight * _feature(state, ring, slot, i)


@kernel
def _add_square(state: State, ring: Ring, slot: int, weight: float, out: Array) -> None:
    for i in range(out.shape[0]):
        weighted = weight * _feature(state, ring, slot, i)
        for j in range(i, out.shape[0]):
            out[i, j] += weighted * _feature(state, ring, slot, j)


@kernel
def _mean(logit: float) -> float:
    """μ(logit)."""
    return 1.0 / (1.0 + math.exp(-logit))


@kernel
def keep_closing_rounds(state: State, ring: Ring, now: int) -> None:
    """Add the rounds that close at `now` to the quadratic: H += μ(1−μ)AAᵀ, η += (μ(1−μ)⟨A, β⟩ + Y − μ)A."""
    state.current_stamp = now
    update_delay_curve(state, ring, now)
    round = state.oldest
    while is_closing(state, ring, round, now):
        slot = slot_of(state, ring, round)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        logit = _logit(state, ring, slot)
        chance = _mean(logit)
        curvature = bernoulli_variance(chance)
        value = block.credit[lane] if block.credit[lane] > 0.0 else 0.0
        _add_square(state, ring, slot, curvature, state.precision)
        _add(state, ring, slot, curvature * logit + value - chance, state.linear)
        round += 1


@kernel
def correct_value(state: State, ring: Ring, slot: int, change: float) -> None:
    """Change the value Y of a closed round by so much, η += change·A: the quadratic is linear in Y."""
    _add(state, ring, slot, change, state.linear)


@kernel
def _add_open_round(state: State, ring: Ring, slot: int, matured: float) -> None:
    """Add a round's gradient (μ − Y − (1−Y)w)A, w = μ(1−F)/(1−Fμ), and its information Fμ(1−μ)²/(1−Fμ)·AAᵀ."""
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    logit = _logit(state, ring, slot)
    chance, refusal = _mean(logit), _mean(-logit)  # 1 − μ would round to 0, and F may be 1
    silence = max(refusal + chance * (1.0 - matured), TINY)  # 1 − Fμ
    expected = chance * (1.0 - matured) / silence
    if not math.isnan(block.credit[lane]):
        expected = max(block.credit[lane], 0.0)  # a revoked conversion is none
    information = matured * chance * refusal * refusal / silence
    _add(state, ring, slot, expected - chance, state.newton_step)
    _add_square(state, ring, slot, information, state.gram)


@kernel
def update_beta(state: State, ring: Ring) -> None:
    """Take one step of Fisher scoring; leave the factor of the information in state.factor."""
    dim, step = state.beta.shape[0], state.newton_step
    for i in range(dim):
        step[i] = state.linear[i]
        for j in range(i, dim):
            state.gram[i, j] = state.precision[i, j]
    for i in range(dim):
        for j in range(dim):
            step[i] -= state.precision[min(i, j), max(i, j)] * state.beta[j]
    j = 0
    for back in range(window_count(state)):  # the newest first: ages only grow, and the first that is closed ends it
        slot = slot_of(state, ring, state.rounds - back)
        stamp = ring[slot // ROUNDS_PER_BLOCK].stamp[slot % ROUNDS_PER_BLOCK]
        if is_closed(state, stamp, state.current_stamp):
            break
        age = max(0, state.current_stamp - stamp)
        j = bin_from(state, j, age)
        _add_open_round(state, ring, slot, maturity_in(state, j, max(age, state.edges[j])))
    factorise(state.gram, 0.0, 0.0, 1.0, state.factor)
    solve_upper_transposed(state.factor, step)
    solve_upper(state.factor, step)
    length = 0.0
    for i in range(dim):
        length += step[i] * step[i]
    scale = min(1.0, LONGEST_STEP / math.sqrt(length)) if length > 0.0 else 1.0
    for i in range(dim):
        state.beta[i] += scale * step[i]
