"""Rounds weighed by their maturity: G = λI + Σ F̂_m(age_s) A_sA_sᵀ.

Weights move in sixteenths. Every round reaches every level of F̂ about once, so that G follows by moving one pointer per
level through the ring, forwards as rounds grow older and backwards where the curve is found to rise later:
O(levels·d²) a round.
"""

import math

import numpy as np

from latecomer.core.delay_curve import delay_curve_fields, update_delay_curve
from latecomer.core.gram import add_outer
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.ring import slot_of
from latecomer.core.state import ROUNDS_PER_BLOCK, ExtraFields, Ring, State

LEVELS = 16


def maturity_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """What a policy keeps to weigh rounds by their maturity."""
    return {
        **delay_curve_fields(span),
        "gram": np.eye(dim) * ridge,  # G, its upper triangle
        "factor": np.zeros((dim, dim)),  # U with UᵀU = G
        "matured": np.zeros(()),  # Σ F̂_m(age_s), in rounds
        "level_heads": np.ones(LEVELS, np.int64),  # the oldest round that has not reached level l
    }


@kernel_noinline
def _move_levels(state: State, ring: Ring, now: int) -> None:
    """A round counts one sixteenth more for every level (l + ½)/16 of F̂_m that its age has reached."""
    j = 0
    for level in range(LEVELS):
        wanted = (level + 0.5) / LEVELS
        while state.curve[j + 1] < wanted:
            j += 1
        age = 0  # before the first bin is covered everything is mature
        if state.curve[j] < wanted:
            part = (wanted - state.curve[j]) / (state.curve[j + 1] - state.curve[j])
            age = state.edges[j] + math.ceil(part * (state.edges[j + 1] - state.edges[j]))
        head = state.level_heads[level]
        while head <= state.rounds:
            slot = slot_of(state, ring, head)
            if now - ring[slot // ROUNDS_PER_BLOCK].stamp[slot % ROUNDS_PER_BLOCK] < age:
                break
            add_outer(state, ring, slot, 1.0 / LEVELS)
            state.matured += 1.0 / LEVELS
            head += 1
        while head > state.oldest:
            slot = slot_of(state, ring, head - 1)
            if now - ring[slot // ROUNDS_PER_BLOCK].stamp[slot % ROUNDS_PER_BLOCK] >= age:
                break
            add_outer(state, ring, slot, -1.0 / LEVELS)
            state.matured -= 1.0 / LEVELS
            head -= 1
        state.level_heads[level] = head


@kernel
def update_maturity(state: State, ring: Ring, now: int) -> None:
    """Bring the curve and G up to `now`; before `expire`, so that what closes then counts in full."""
    update_delay_curve(state, ring, now)
    _move_levels(state, ring, now)


@kernel
def conversion_rate(state: State) -> float:
    """p̂ = (conversions + 1)/(matured rounds + 2), kept below 0.9: it estimates τ_m times the mean reward."""
    return float(min(0.9, (state.credited + 1.0) / (state.matured + 2.0)))
