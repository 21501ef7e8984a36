"""The widths: the radius f of Theorem 1 (Vernade et al., ICML 2020), and W, the most that open rounds can still add."""

import math

import numpy as np

from latecomer.core.jit import kernel, vectorised
from latecomer.core.linalg.products import UNROLLED
from latecomer.core.ring import add_width, is_closing, slot_of, spanned_blocks, window_count
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Ring, State


@kernel
def radius(t: int, dim: int, ridge: float, delta: float) -> float:
    """f_{t,δ} = √λ + √(2 ln(1/δ) + d ln((dλ + t)/(dλ))), Eq. 3."""
    return math.sqrt(ridge) + math.sqrt(-2.0 * math.log(delta) + dim * math.log((dim * ridge + t) / (dim * ridge)))


@kernel
def noise_radius(state: State) -> float:
    """½√(2 ln(1/δ) + ln det(V_t)/λ^d): the noise of a value in [0, 1] is ½-sub-Gaussian."""
    return 0.5 * math.sqrt(-2.0 * math.log(state.delta) + state.log_det)


@kernel
def bernoulli_radius(state: State) -> float:
    """r_t = √λ + ½√(2 ln(1/δ) + ln det(V_t)/λ^d): the noise, and the bias of the ridge."""
    return math.sqrt(state.ridge) + noise_radius(state)


@kernel
def pending_width(state: State) -> float:
    """W_t, the sum over the window of ‖A_s‖: in V_t⁻¹ when exact, in V_s⁻¹ when buffered."""
    return max(0.0, state.width_sum + state.width_lost)


@kernel
def pending_width_at(state: State, ring: Ring, now: int) -> float:
    """Return W as of a decision at `now`, without closing anything."""
    width_sum, width_lost = state.width_sum, state.width_lost
    round = state.oldest
    while is_closing(state, ring, round, now):
        slot = slot_of(state, ring, round)
        add_width(state, -math.sqrt(ring[slot // ROUNDS_PER_BLOCK].norm[slot % ROUNDS_PER_BLOCK]))
        round += 1
    width = pending_width(state) if round <= state.rounds else 0.0
    state.width_sum, state.width_lost = width_sum, width_lost
    return width


def _shrink_lanes(state: State, action: Array, norm: Array, shrink: float, low: int, high: int) -> None:
    products = np.zeros(high - low)
    for j in range(len(state.u)):
        products += action[j, low:high] * state.u[j]
    rest = norm[low:high] - products * products * shrink
    norm[low:high] = np.where(rest > 0.0, rest, 0.0)
    state.sums[low:high] += np.sqrt(norm[low:high])


@vectorised(_shrink_lanes)
def shrink_block(state: State, action: Array, norm: Array, shrink: float, low: int, high: int) -> None:
    """Update the norms of one block's lanes, low to high, and add their roots to the sums."""
    dim, u, products, sums = state.B.shape[0], state.u, state.products, state.sums
    if dim <= UNROLLED:
        for lane in range(low, high):
            product = 0.0
            for j in range(dim):
                product += action[j, lane] * u[j]
            rest = norm[lane] - product * product * shrink
            norm[lane] = rest if rest > 0.0 else 0.0
    else:
        for lane in range(ROUNDS_PER_BLOCK):
            products[lane] = 0.0
        for j in range(dim):
            u_j = u[j]
            for lane in range(ROUNDS_PER_BLOCK):
                products[lane] += action[j, lane] * u_j
        for lane in range(ROUNDS_PER_BLOCK):
            rest = norm[lane] - products[lane] * products[lane] * shrink
            norm[lane] = rest if rest > 0.0 else 0.0
    for lane in range(low, high):
        sums[lane] += math.sqrt(norm[lane])


def _fold_halves(sums: Array) -> float:
    for half in (ROUNDS_PER_BLOCK // 2, ROUNDS_PER_BLOCK // 4, ROUNDS_PER_BLOCK // 8):
        sums[:half] += sums[half : 2 * half]
    total = 0.0
    for lane in range(ROUNDS_PER_BLOCK // 8):
        total += float(sums[lane])
    return total


@vectorised(_fold_halves)
def fold(sums: Array) -> float:
    """Sum over the lanes, in halves: one addition after the other would take as long as all the rest."""
    for lane in range(ROUNDS_PER_BLOCK // 2):
        sums[lane] += sums[lane + ROUNDS_PER_BLOCK // 2]
    for lane in range(ROUNDS_PER_BLOCK // 4):
        sums[lane] += sums[lane + ROUNDS_PER_BLOCK // 4]
    for lane in range(ROUNDS_PER_BLOCK // 8):
        sums[lane] += sums[lane + ROUNDS_PER_BLOCK // 8]
    total = 0.0
    for lane in range(ROUNDS_PER_BLOCK // 8):
        total += sums[lane]
    return total


@kernel
def shrink_norms(state: State, ring: Ring, c: float) -> None:
    """Update n_s = ‖A_s‖²_{V⁻¹} of every held round, n_s −= (A_s·u)²/(1 + c), and sum W afresh. O(m·d).

    A closed lane has n = 0 and stays there. Lanes run side by side, each summed on its own, so that the loops become
    vector ones without reordering a sum.
    """
    shrink, sums = 1.0 / (1.0 + c), state.sums
    sums[:] = 0.0
    first = state.head // ROUNDS_PER_BLOCK
    last = spanned_blocks(state.head, window_count(state)) - 1
    for i in range(last + 1):
        # low and high are multiples of 8, so that no lane is left for scalar code
        low = state.head % ROUNDS_PER_BLOCK // 8 * 8 if i == 0 else 0
        high = (
            ((state.head + window_count(state) - 1) % ROUNDS_PER_BLOCK // 8 + 1) * 8 if i == last else ROUNDS_PER_BLOCK
        )
        block = ring[first + i if first + i < ring.shape[0] else first + i - ring.shape[0]]
        shrink_block(state, block.action, block.norm, shrink, low, high)
    state.width_sum, state.width_lost = fold(sums), 0.0


@kernel
def renew_norms(state: State, ring: Ring) -> None:
    """Compute every norm of the ring afresh from V⁻¹, after a refactorisation. O(m·d²), rare."""
    dim = state.B.shape[0]
    total = 0.0
    for i in range(window_count(state)):
        slot = slot_of(state, ring, state.oldest + i)
        block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
        norm = 0.0
        for j in range(dim):
            row = 0.0
            for k in range(dim):
                row += state.V_inv[j, k] * block.action[k, lane]
            norm += row * block.action[j, lane]
        block.norm[lane] = norm
        total += math.sqrt(norm)
    state.width_sum, state.width_lost = total, 0.0


def unit_width(state: State, pending_width: float) -> float:
    """Return 1: exploration is scaled by the policy's parameter alone."""
    return 1.0
