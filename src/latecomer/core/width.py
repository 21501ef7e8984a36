"""The widths: the radius f of Theorem 1 (Vernade et al., ICML 2020), and W, the most that open rounds can still add."""

import math

from latecomer.core.jit import kernel
from latecomer.core.linalg.products import UNROLLED
from latecomer.core.ring import add_width, held_count, is_closing, slot_of, spanned_blocks
from latecomer.core.state import ROUNDS_PER_BLOCK, Ring, State


@kernel
def radius(t: int, dim: int, ridge: float, delta: float) -> float:
    """f_{t,δ} = √λ + √(2 ln(1/δ) + d ln((dλ + t)/(dλ))), Eq. 3."""
    return math.sqrt(ridge) + math.sqrt(-2.0 * math.log(delta) + dim * math.log((dim * ridge + t) / (dim * ridge)))


@kernel
def bernoulli_radius(state: State) -> float:
    """r_t = √λ + ½√(2 ln(1/δ) + ln det(V_t)/λ^d): the noise of a value in [0, 1] is ½-sub-Gaussian."""
    return math.sqrt(state.ridge) + 0.5 * math.sqrt(-2.0 * math.log(state.delta) + state.log_det)


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


@kernel
def shrink_norms(state: State, ring: Ring, c: float) -> None:
    """Update n_s = ‖A_s‖²_{V⁻¹} of every held round, n_s −= (A_s·u)²/(1 + c), and sum W afresh. O(m·d).

    A closed lane has n = 0 and stays there. Lanes run side by side, each summed on its own, so that the loops become
    vector ones without reordering a sum.
    """
    dim = state.B.shape[0]
    shrink = 1.0 / (1.0 + c)
    u, products, sums = state.u, state.products, state.sums
    for lane in range(ROUNDS_PER_BLOCK):
        sums[lane] = 0.0
    first = state.head // ROUNDS_PER_BLOCK
    last = spanned_blocks(state.head, held_count(state)) - 1
    for i in range(last + 1):
        # low and high are multiples of 8, so that no lane is left for scalar code
        low = state.head % ROUNDS_PER_BLOCK // 8 * 8 if i == 0 else 0
        high = ((state.head + held_count(state) - 1) % ROUNDS_PER_BLOCK // 8 + 1) * 8 if i == last else ROUNDS_PER_BLOCK
        block = ring[first + i if first + i < ring.shape[0] else first + i - ring.shape[0]]
        action, norm = block.action, block.norm
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
    # folded in halves: one addition after the other would take as long as all the rest
    for lane in range(ROUNDS_PER_BLOCK // 2):
        sums[lane] += sums[lane + ROUNDS_PER_BLOCK // 2]
    for lane in range(ROUNDS_PER_BLOCK // 4):
        sums[lane] += sums[lane + ROUNDS_PER_BLOCK // 4]
    for lane in range(ROUNDS_PER_BLOCK // 8):
        sums[lane] += sums[lane + ROUNDS_PER_BLOCK // 8]
    total = 0.0
    for lane in range(ROUNDS_PER_BLOCK // 8):
        total += sums[lane]
    state.width_sum, state.width_lost = total, 0.0


@kernel
def renew_norms(state: State, ring: Ring) -> None:
    """Compute every norm of the ring afresh from V⁻¹, after a refactorisation. O(m·d²), rare."""
    dim = state.B.shape[0]
    total = 0.0
    for i in range(held_count(state)):
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
