"""Choices that are drawn by known probabilities: propensities by design, without error.

A randomised algorithm is another algorithm with a last step. It computes a probability e_k for each action, blends in a
floor ε and a control, and draws the choice from the result, so that the probability of the choice is known exactly:

    p_k = f·c_k + (1 − f)·((1 − ε)·e_k + ε/K),

f the share of the control and c its own choice. With a ceiling e is first replaced by the nearest probabilities that
keep (1 − ε)·e_k + ε/K at or below it: what one action has too much goes to the others in equal parts. For an optimist e
is 1 for the best action. For a sampler e_k is the share of n samples in which action k has the largest score; given the
samples that is the probability of the choice, and over all samples a choice is distributed as the sampler's own.
"""

import numpy as np

from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.rng import fill_normals, mix, seed_from
from latecomer.core.sampling import count_wins, shorten_spread
from latecomer.core.state import Array, Ring, State, StateArray
from latecomer.policies.base.algorithm import fill_probabilities, observe_actions, posterior, propose
from latecomer.policies.base.kernels import start_round

UNIFORM_CONTROL, NO_CONTROL = -1, -2
"""In place of the index that the control plays."""


def probabilities_of_best(state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array) -> None:
    """1 for the action that an optimist would choose."""
    best = propose(state, ring, actions, draws, scores)
    for k in range(actions.shape[0]):
        out[k] = 0.0
    out[best] = 1.0


def probabilities_of_scores(state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array) -> None:
    """The scores themselves."""
    propose(state, ring, actions, draws, scores)
    for k in range(actions.shape[0]):
        out[k] = scores[k]


def probabilities_of_samples(state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array) -> None:
    """The shares of samples that each action wins; the scores are the means of the posterior."""
    count, numbers = actions.shape[0], draws.shape[0] - 1
    spread = np.zeros((numbers, count))
    posterior(state, ring, actions, scores, spread)
    if count < numbers:
        short = np.empty((count, count))
        shorten_spread(spread, short)
        spread = short
    samples = int(state.draws)
    normals = np.empty((spread.shape[0], (samples + 1) // 2))
    seed, _ = mix(seed_from(draws[numbers]))  # its number is that of `draw_choice`
    fill_normals(seed, normals)
    count_wins(scores, spread, normals, samples, out)
    for k in range(count):
        out[k] /= samples


@kernel
def _control_probability(state: State, k: int, count: int) -> float:
    if state.control_index == UNIFORM_CONTROL:
        return 1.0 / count
    return 1.0 if k == state.control_index else 0.0


@kernel
def _control_share(state: State, count: int) -> float:
    return float(state.control_share) if UNIFORM_CONTROL <= state.control_index < count else 0.0


@kernel
def _add_floor(state: State, probability: float, count: int) -> float:
    return float((1.0 - state.floor) * probability + state.floor / count)


@kernel
def cap_probabilities(state: State, own: Array) -> None:
    """Replace e by the nearest probabilities that respect the ceiling: e_k = min(limit, e_k + t), with Σ e_k = 1.

    The sum is concave in t, so that Newton's steps do not overshoot, and linear in pieces, so that they end.
    """
    count = own.shape[0]
    if state.ceiling >= 1.0 or state.floor >= 1.0:
        return
    limit = max(1.0 / count, (state.ceiling - state.floor / count) / (1.0 - state.floor))
    rise = 0.0
    for _ in range(count):
        total, free = 0.0, 0
        for k in range(count):
            total += min(limit, own[k] + rise)
            if own[k] + rise < limit:
                free += 1
        if total >= 1.0 or free == 0:
            break
        rise += (1.0 - total) / free
    for k in range(count):
        own[k] = min(limit, own[k] + rise)


@kernel
def draw_choice(state: State, number: float, own: Array) -> int:
    """Draw the choice, given the algorithm's own probabilities e; keep its probability, negative for the control."""
    count = own.shape[0]
    share = _control_share(state, count)
    sign, index = 1.0, -1
    if number < share:
        sign = -1.0
        index = int(state.control_index)
        if index == UNIFORM_CONTROL:
            index = min(int(number / share * count), count - 1)
    else:
        rest = (number - share) / (1.0 - share)
        for k in range(count):  # where rounding leaves a rest, it goes to the last action that can be chosen
            probability = _add_floor(state, own[k], count)
            if probability > 0.0 and rest >= 0.0:
                index = k
            rest -= probability
    blended = share * _control_probability(state, index, count) + (1.0 - share) * _add_floor(state, own[index], count)
    state.signed_propensity = sign * blended
    return index


def choose_by_probabilities(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """Draw the choice by its probabilities; a score is the algorithm's own, for a sampler its mean."""
    own = np.empty(actions.shape[0])
    fill_probabilities(state, ring, actions, draws, scores, own)
    cap_probabilities(state, own)
    _, number = mix(seed_from(draws[draws.shape[0] - 1]))
    return draw_choice(state, number, own)


def drawn_propensity(state: State) -> float:
    """Return the probability that `draw_choice` kept."""
    return float(state.signed_propensity)


@kernel_noinline
def assess_actions(
    states: StateArray, ring: Ring, actions: Array, stamp: int, draws: Array, scores: Array, out: Array
) -> None:
    """Fill in the scores and the probabilities of a decision at `stamp`; `states` and `ring` are copies that change."""
    state = states[0]
    observe_actions(state, actions)
    start_round(state, ring, stamp, draws)
    fill_probabilities(state, ring, actions, draws, scores, out)
    cap_probabilities(state, out)
    count = actions.shape[0]
    share = _control_share(state, count)
    for k in range(count):
        out[k] = share * _control_probability(state, k, count) + (1.0 - share) * _add_floor(state, out[k], count)
