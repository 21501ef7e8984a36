"""Rounds weighed by their maturity: G = λI + Σ F̂_m(age_s) A_sA_sᵀ.

Weights move by levels: in sixteenths, and in quarters beyond `DIRECT` dimensions. Every round reaches every level of F̂
about once, so that G follows by moving one pointer per level through the ring, forwards as rounds grow older and
backwards where the curve is found to rise later: O(levels·d²) a round.
"""

import math

import numpy as np

from latecomer.core.age_buckets import DETECTS, mature_in_bucket, scale_buckets
from latecomer.core.delay_curve import delay_curve_fields, update_delay_curve
from latecomer.core.forgetting import counted_weight, scale_matrix, weight_at
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.rates import estimate_rate
from latecomer.core.ring import slot_of, stamp_of
from latecomer.core.state import (
    ExtraFields,
    Field,
    FieldKind,
    Ring,
    State,
    number_field,
    scratch_field,
)
from latecomer.core.weighted_gram import (
    DIRECT,
    UPDATES,
    add_outer,
    apply_batch,
    collect_outer,
    factorise_gram,
    gram_fields,
)

LEVELS, COARSE_LEVELS = 16, 4
"""Levels of F̂ up to `DIRECT` dimensions, and beyond."""

MOST_MOVES = 0.5
"""Moves of rounds at once, for each dimension, from which a new factor costs less than to follow them."""


def count_levels(dim: int) -> int:
    """Return the number of levels in which weights move."""
    return LEVELS if dim <= DIRECT else COARSE_LEVELS


def maturity_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """Return the fields that weigh rounds by their maturity; the algorithm needs arrival times."""
    return {
        **delay_curve_fields(span),
        **gram_fields(dim, ridge),
        "matured": number_field(),  # Σ F̂_m(age_s), in rounds
        "level_pointers": Field(np.ones(count_levels(dim), np.int64), FieldKind.POINTER),  # first round not at level l
        "next_pointers": scratch_field(count_levels(dim), dtype=np.int64),  # where they are to be
    }


@kernel
def _bin_of(state: State, share: float, j: int) -> int:
    """Return the bin, j or a later one, in which F̂_m reaches a share."""
    while state.curve[j + 1] < share:
        j += 1
    return j


@kernel
def _age_of(state: State, share: float, j: int) -> int:
    """Return the age at which F̂_m reaches a share, in bin j."""
    if state.curve[j] >= share:
        return 0  # before the first bin is covered everything is mature
    part = (share - state.curve[j]) / (state.curve[j + 1] - state.curve[j])
    return int(state.edges[j] + math.ceil(part * (state.edges[j + 1] - state.edges[j])))


@kernel
def _has_age(state: State, ring: Ring, round: int, age: int, now: int) -> bool:
    return now - stamp_of(state, ring, round) >= age


@kernel
def _raise_weight(state: State, ring: Ring, round: int, share: float) -> None:
    """Count a round's maturity for so much more, or less: in G unless it is set aside, and in its bucket."""
    stamp = stamp_of(state, ring, round)
    weight = share * counted_weight(state, stamp)
    add_outer(state, ring, slot_of(state, ring, round), weight)
    state.matured += weight
    if state.forgets == DETECTS:
        mature_in_bucket(state, stamp, share * weight_at(state, stamp))


@kernel_noinline
def _move_levels(state: State, ring: Ring, now: int) -> None:
    """Weigh every round by a sixteenth for each level (l + ½)/16 of F̂_m that its age has reached."""
    j = 0
    for level in range(LEVELS):
        wanted = (level + 0.5) / LEVELS
        j = _bin_of(state, wanted, j)
        age = _age_of(state, wanted, j)
        pointer = state.level_pointers[level]
        while pointer <= state.rounds and _has_age(state, ring, pointer, age, now):
            _raise_weight(state, ring, pointer, 1.0 / LEVELS)
            pointer += 1
        while pointer > state.oldest and not _has_age(state, ring, pointer - 1, age, now):
            _raise_weight(state, ring, pointer - 1, -1.0 / LEVELS)
            pointer -= 1
        state.level_pointers[level] = pointer


@kernel
def _find_pointers(state: State, ring: Ring, now: int) -> None:
    """Fill in where the pointers of all levels are to be at `now`."""
    j, levels = 0, state.level_pointers.shape[0]
    for level in range(levels):
        wanted = (level + 0.5) / levels
        j = _bin_of(state, wanted, j)
        age = _age_of(state, wanted, j)
        pointer = state.level_pointers[level]
        while pointer <= state.rounds and _has_age(state, ring, pointer, age, now):
            pointer += 1
        while pointer > state.oldest and not _has_age(state, ring, pointer - 1, age, now):
            pointer -= 1
        state.next_pointers[level] = pointer


@kernel
def _moves_of(state: State, round: int, level: int) -> int:
    """Count the levels that a round moves up, less those that it moves down; 0 if it moves below `level` too."""
    moves = 0
    for other in range(state.level_pointers.shape[0]):
        before, after = state.level_pointers[other], state.next_pointers[other]
        if before <= round < after or after <= round < before:
            if other < level:
                return 0
            moves += 1 if before < after else -1
    return moves


@kernel
def _count_moving(state: State) -> int:
    """Count the rounds that move, by however many levels."""
    count = 0
    for level in range(state.level_pointers.shape[0]):
        before, after = state.level_pointers[level], state.next_pointers[level]
        for round in range(min(before, after), max(before, after)):
            if _moves_of(state, round, level) != 0:
                count += 1
    return count


@kernel_noinline
def _move_levels_in_batches(state: State, ring: Ring, now: int) -> None:
    """Weigh every round as `_move_levels` does, in coarser levels; a round that moves by several is one term of G."""
    _find_pointers(state, ring, now)
    count, levels, dim = _count_moving(state), state.level_pointers.shape[0], state.gram.shape[0]
    if count == 0:
        return
    state.factor_updates += count
    follow = count <= MOST_MOVES * dim and state.factor_updates <= UPDATES * dim
    for sign in (1, -1):  # up first: in between, nothing is taken away that is not there
        for level in range(levels):
            before, after = state.level_pointers[level], state.next_pointers[level]
            for round in range(min(before, after), max(before, after)):
                moves = _moves_of(state, round, level)
                if moves * sign > 0:
                    weight = moves / levels
                    if state.forgets:
                        weight *= weight_at(state, stamp_of(state, ring, round))
                    follow = collect_outer(state, ring, slot_of(state, ring, round), weight, follow)
                    state.matured += weight
        follow = apply_batch(state, follow)
    for level in range(levels):
        state.level_pointers[level] = state.next_pointers[level]
    if not follow:
        factorise_gram(state)


@kernel
def weigh_by_curve(state: State, ring: Ring, now: int) -> None:
    """Bring G up to `now` by the curve as it is."""
    if state.gram.shape[0] <= DIRECT:
        _move_levels(state, ring, now)
    else:
        _move_levels_in_batches(state, ring, now)


@kernel
def update_maturity(state: State, ring: Ring, now: int) -> None:
    """Bring the curve and G up to `now`; before `expire`, so that rounds that close then count in full."""
    update_delay_curve(state, ring, now)
    weigh_by_curve(state, ring, now)


@kernel
def forget_maturity(state: State, factor: float) -> None:
    """Weigh all rounds in G by a factor, and factorise it afresh where U follows it."""
    scale_matrix(state.gram, factor, state.ridge)
    state.matured *= factor
    if state.forgets == DETECTS:
        scale_buckets(state, factor)
    if state.gram.shape[0] > DIRECT:
        factorise_gram(state)


@kernel
def conversion_rate(state: State) -> float:
    """Return p̂ over the matured rounds, which estimates τ_m times the mean reward."""
    return estimate_rate(state.credited, state.matured)
