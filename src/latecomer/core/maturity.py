"""Rounds weighed by their maturity: G = λI + Σ F̂_m(age_s) A_sA_sᵀ.

Weights move in sixteenths. Every round reaches every level of F̂ about once, so that G follows by moving one pointer per
level through the ring, forwards as rounds grow older and backwards where the curve is found to rise later:
O(levels·d²) a round.
"""

import math

import numpy as np

from latecomer.core.delay_curve import delay_curve_fields, update_delay_curve
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.rates import estimate_rate
from latecomer.core.ring import slot_of
from latecomer.core.state import (
    ROUNDS_PER_BLOCK,
    ExtraFields,
    Field,
    FieldKind,
    Ring,
    State,
    number_field,
    scratch_field,
)
from latecomer.core.weighted_gram import add_outer

LEVELS = 16


def maturity_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """Return the fields that weigh rounds by their maturity; the algorithm needs arrival times."""
    return {
        **delay_curve_fields(span),
        "gram": Field(np.eye(dim) * ridge),  # G, its upper triangle
        "factor": scratch_field(dim, dim),  # U with UᵀU = G
        "matured": number_field(),  # Σ F̂_m(age_s), in rounds
        "level_pointers": Field(np.ones(LEVELS, np.int64), FieldKind.POINTER),  # the first round not at level l
    }


@kernel_noinline
def _move_levels(state: State, ring: Ring, now: int) -> None:
    """Weigh every round by a sixteenth for each level (l + ½)/16 of F̂_m that its age has reached."""
    j = 0
    for level in range(LEVELS):
        wanted = (level + 0.5) / LEVELS
        while state.curve[j + 1] < wanted:
            j += 1
        age = 0  # before the first bin is covered everything is mature
        if state.curve[j] < wanted:
            part = (wanted - state.curve[j]) / (state.curve[j + 1] - state.curve[j])
            age = state.edges[j] + math.ceil(part * (state.edges[j + 1] - state.edges[j]))
        pointer = state.level_pointers[level]
        while pointer <= state.rounds:
            slot = slot_of(state, ring, pointer)
            if now - ring[slot // ROUNDS_PER_BLOCK].stamp[slot % ROUNDS_PER_BLOCK] < age:
                break
            add_outer(state, ring, slot, 1.0 / LEVELS)
            state.matured += 1.0 / LEVELS
            pointer += 1
        while pointer > state.oldest:
            slot = slot_of(state, ring, pointer - 1)
            if now - ring[slot // ROUNDS_PER_BLOCK].stamp[slot % ROUNDS_PER_BLOCK] >= age:
                break
            add_outer(state, ring, slot, -1.0 / LEVELS)
            state.matured -= 1.0 / LEVELS
            pointer -= 1
        state.level_pointers[level] = pointer


@kernel
def update_maturity(state: State, ring: Ring, now: int) -> None:
    """Bring the curve and G up to `now`; before `expire`, so that rounds that close then count in full."""
    update_delay_curve(state, ring, now)
    _move_levels(state, ring, now)


@kernel
def conversion_rate(state: State) -> float:
    """Return p̂ over the matured rounds, which estimates τ_m times the mean reward."""
    return estimate_rate(state.credited, state.matured)
