"""The delay curve F_m(age): the share of in-window conversions that have arrived by that age.

Observed conversions are right-truncated: a round of age g can only show delays below g. With the
window cut into bins, d_j = #{D in bin j} and n_j = #{D in bin j or below}, both over rounds whose age covers bin j, the
reverse hazard q_j = P(D in bin j | D in bin j or below) is estimated by (prior + d_j)/(prior weight + n_j), and
F_m(start of bin k) = Π_{j ≥ k} (1 − q_j) (Lynden-Bell; docs/reference/notation.md). The prior is a uniform delay.
F_m(m) = 1: the share of conversions that the window loses cannot be known from inside it.

Delays longer than the policy has been running cannot be known either. Where a window is far longer than that, a prior
over the whole window would take every round for immature, and θ̂ would grow without bound. So maturity is measured
against the delays that can have been observed, F_m(k)/F_m(g): g is the age of the oldest round, but for a sixteenth of
them (rounded up), so that a trial a day before the traffic does not decide it. A bin that ends beyond g has neither
data nor prior, q_j = 0.

Every round passes the end of every bin once, so the counts follow by moving one pointer per bin through the ring.
"""

import numpy as np

from latecomer.core.conversions import is_delay_known
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.ring import slot_of
from latecomer.core.state import ROUNDS_PER_BLOCK, ExtraFields, Field, FieldKind, Ring, State, number_field

BINS = 32
PRIOR = 4.0
"""The weight of a bin's prior, in conversions."""
OLDEST_SHARE = 16
"""One round in so many may be older than the age that maturity is measured against."""


def bin_edges(span: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return 0 = e_0 < e_1 < … ≤ span + 1: bin j is [e_j, e_{j+1}), narrow where delays are short."""
    edges = np.zeros(BINS + 1, np.int64)
    for j in range(1, BINS + 1):
        wanted = (span + 1) * j**3 // BINS**3  # whole numbers: a double would lose the end of a long window
        edges[j] = min(span + 1, max(wanted, edges[j - 1] + 1))
    return edges


def delay_curve_fields(span: int) -> ExtraFields:
    """Return the fields that estimate the curve; the algorithm needs arrival times."""
    return {
        "edges": Field(bin_edges(span), FieldKind.BIN_EDGES),
        "bin_pointers": Field(np.ones(BINS, np.int64), FieldKind.POINTER),  # the first round not past the end of bin j
        "at_risk": Field(np.zeros(BINS)),  # n_j
        "events": Field(np.zeros(BINS)),  # d_j
        "recount": number_field(np.int64),  # 1: a closed round has changed the counts since the curve was computed
        "curve": Field(np.ones(BINS + 1), FieldKind.DELAY_CURVE),  # F̂_m before e_j
    }


@kernel
def reference_round(rounds: int) -> int:
    """Return the round against whose age maturity is measured, of `rounds` rounds; of one, the next."""
    return (rounds + OLDEST_SHARE - 1) // OLDEST_SHARE + 1


@kernel
def _count_covered_rounds(state: State, ring: Ring, now: int) -> bool:
    """Count the rounds whose age has come to cover a bin; return whether the curve changes."""
    moved = False
    reference, last_reference = reference_round(state.rounds), reference_round(state.rounds - 1)
    for j in range(BINS):
        end = state.edges[j + 1]
        pointer = first = state.bin_pointers[j]
        while pointer <= state.rounds:
            slot = slot_of(state, ring, pointer)
            block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
            if now - block.stamp[lane] < end:
                break
            if is_delay_known(block, lane) and block.arrival[lane] - block.stamp[lane] < end:
                moved = True
                state.at_risk[j] += 1.0
                if block.arrival[lane] - block.stamp[lane] >= state.edges[j]:
                    state.events[j] += 1.0
            pointer += 1
        state.bin_pointers[j] = pointer
        moved = moved or (pointer > reference) != (first > last_reference)
    return moved


@kernel
def _recompute_curve(state: State) -> None:
    """Compute F̂_m at every edge from the counts of the bins whose end the reference round has reached."""
    share = 1.0
    state.curve[BINS] = 1.0
    for step in range(BINS):
        j = BINS - 1 - step
        if state.bin_pointers[j] > reference_round(state.rounds):
            start, end = state.edges[j], state.edges[j + 1]
            uniform = (end - start) / end
            share *= 1.0 - (PRIOR * uniform + state.events[j]) / (PRIOR + state.at_risk[j])
        state.curve[j] = share


@kernel_noinline
def update_delay_curve(state: State, ring: Ring, now: int) -> None:
    """Bring the counts and the curve up to `now`; before `expire`, so that rounds that close then are counted."""
    if _count_covered_rounds(state, ring, now) or state.recount != 0:
        state.recount = 0
        _recompute_curve(state)


@kernel
def count_closed_delay(state: State, delay: int) -> None:
    """Count the delay of a round that has passed the end of every bin; none where it is −1."""
    if delay >= 0:
        state.recount = 1
        for j in range(BINS):
            if delay < state.edges[j + 1]:
                state.at_risk[j] += 1.0
                if delay >= state.edges[j]:
                    state.events[j] += 1.0


@kernel
def bin_from(state: State, j: int, age: int) -> int:
    """Return the bin of an age inside the window, which is bin j or a later one."""
    while state.edges[j + 1] <= age:
        j += 1
    return j


@kernel
def maturity_in(state: State, j: int, age: int) -> float:
    """Return F̂_m at an age of bin j; linear inside the bin."""
    part = (age - state.edges[j]) / (state.edges[j + 1] - state.edges[j])
    return float(state.curve[j] + part * (state.curve[j + 1] - state.curve[j]))
