"""Samples of θ̃ by themselves, for choices among actions that are not a list: a catalogue, or the answers of an oracle.

A sampler's scores are linear in the action, ⟨a, θ̃⟩ and perhaps an intercept. Its law of the scores of the unit vectors
and of 0 is therefore that of θ̃, and whoever finds the action of the largest ⟨a, θ̃⟩ makes the sampler's choice.
"""

from typing import NamedTuple

import numpy as np

from latecomer.core.action_summary import Shorts
from latecomer.core.jit import kernel_noinline
from latecomer.core.rng import fill_normals, mix, seed_from
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Ring, StateArray
from latecomer.policies.base.algorithm import observe_summary, posterior, square_bonus
from latecomer.policies.base.compiled_state import CompiledState, copy_record
from latecomer.policies.base.kernels import start_round
from latecomer.policies.base.policy_code import Record
from latecomer.policies.base.rng import draw_count


class ThetaSamples(NamedTuple):
    """θ̃ by rows, with the intercept of each; their mean; and a uniform number, where choices have propensities.

    `bonus` is b·V⁻¹ where scores have b·‖a‖²_{V⁻¹} besides; None where they have nothing.
    """

    thetas: Array
    intercepts: Array
    mean: Array
    number: float
    bonus: Array | None

    def score(self, action: Array, theta: Array, intercept: float = 0.0) -> float:
        """Return an action's score under θ."""
        bonus = 0.0 if self.bonus is None else float(action @ self.bonus @ action)
        return float(action @ theta) + intercept + bonus


@kernel_noinline
def sample_thetas(
    states: StateArray, ring: Ring, basis: Array, summary: Shorts, stamp: int, draws: Array, numbers: int, out: Array
) -> tuple[float, float]:
    """Fill `out` with the mean and the samples of a decision at `stamp`, a row each, its last column the intercept.

    `basis` has the unit vectors and 0; `states` and `ring` are copies that change. Return the number of the choice, and
    the factor of ‖a‖²_{V⁻¹}.
    """
    state, dim = states[0], basis.shape[1]
    if not state.frozen:
        observe_summary(state, summary)
    start_round(state, ring, stamp, draws)
    means, spread = np.zeros(dim + 1), np.zeros((numbers, dim + 1))
    posterior(state, ring, basis, means, spread)
    factor = square_bonus(state)
    for i in range(dim):
        means[i] -= factor * state.V_inv[i, i]
    number, samples = 0.0, out.shape[0] - 1
    normals = np.empty((numbers, (samples + 1) // 2))
    if draws.shape[0] > numbers:
        seed, number = mix(seed_from(draws[numbers]))
        fill_normals(seed, normals)
    else:
        for j in range(numbers):
            normals[j, 0] = draws[j]
    for row in range(samples + 1):
        for i in range(dim + 1):
            out[row, i] = means[i]
        if row > 0:
            half = normals.shape[1]
            sign = 1.0 if row <= half else -1.0
            pair = row - 1 if row <= half else row - 1 - half
            for j in range(numbers):
                z = sign * normals[j, pair]
                for i in range(dim + 1):
                    out[row, i] += z * spread[j, i]
        for i in range(dim):
            out[row, i] -= out[row, dim]
    return number, factor


def draw_thetas(state: CompiledState, summary: Shorts, *, stamp: int, draws: Array) -> ThetaSamples:
    """Return the samples that a decision at `stamp` chooses by, given its draws; nothing is recorded."""
    dim, algorithm = state.dim, state.algorithm
    samples = int(state.number("draws")) if algorithm.is_randomised else 1
    basis = np.concatenate([np.eye(dim), np.zeros((1, dim))])
    out, numbers = np.empty((1 + samples, dim + 1)), draw_count(algorithm.draw, dim)
    code = state.code.kernel(sample_thetas, basis, summary, 0, draws, numbers, out)
    record = copy_record(state.record)
    ring = copy_if_closing(record, state.ring, stamp)
    number, factor = code(record, ring, basis, summary, stamp, draws, numbers, out)
    bonus = factor * record["V_inv"][0] if factor else None
    return ThetaSamples(out[1:, :dim], out[1:, dim], out[0, :dim], float(number), bonus)


def copy_if_closing(record: Record, ring: Ring, stamp: int) -> Ring:
    """Return a ring that a decision at `stamp` may change: it clears the rounds that close, and else only reads.

    Where the state forgets, norms may change too.
    """
    if record["forgets"][0] and record["refresh_norms"][0]:
        return ring.copy()
    if record["oldest"][0] > record["rounds"][0]:
        return ring
    block, lane = divmod(int(record["head"][0]), ROUNDS_PER_BLOCK)
    oldest = int(ring["stamp"][block, lane])
    return ring.copy() if stamp - oldest > record["span"][0] else ring
