"""The variance-aware confidence set: bounds of ⟨a, φ⟩, φ = τ_mθ, for every action and at every round at once.

Rounds are learnt from when they close, in the order in which they were played, each with the weight 1/σ̄². With Hc and b
over closed rounds, Hf over all, and W the variance that was observed,

    φ̂ = Hc⁻¹b,    |⟨a, φ̂ − φ⟩| ≤ w(a) = min_j √(γ_j·(uᵀWu + λ_j‖u‖²)) + λ_H‖u‖₂,    u = Hc⁻¹a,

with γ_j = 2 ln(J/δ) + ln det(I + W/λ_j) and λ_j = 4^j, for every a and t, with probability 1 − δ: a theorem, whatever
rule chooses the actions (docs/explanation/theory/variance-width.md). O(d²) for an action, O(J·d²) for a round that
closes, and no sum over the window. The ring keeps ū_s and σ̄_s² of each open round.
"""

import math

import numpy as np

from latecomer.core.jit import kernel, kernel_noinline, vectorised
from latecomer.core.linalg.products import dot, multiply
from latecomer.core.ridge_statistics import STEEP, refresh_inverse
from latecomer.core.ring import is_closing, slot_of
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, ExtraFields, Field, Ring, State, number_field, scratch_field

MIXTURES = 7
"""J, the number of scales λ_j."""
SLACK = 0.25
"""ε: Hf may exceed Hc by (1 + ε)² before the bonus is lowered."""
VARIANCE_FLOOR = 0.25
"""c: σ̄² is at least c‖A‖ in Hf⁻¹."""
LEAST_BOUND = 1e-4
"""u_min, the least upper bound of a rate."""
ROUND_FIELDS = ("bound", "variance")
"""ū_s and σ̄_s² of each open round."""


def set_fields(dim: int, ridge: float) -> ExtraFields:
    """Return the fields of the set."""
    scales = np.array([4.0**j for j in range(MIXTURES)])
    return {
        "closed_H": Field(np.eye(dim) * ridge),  # Hc
        "closed_H_inv": Field(np.eye(dim) / ridge),
        "closed_log_det": number_field(),  # ln det(Hc)/λ_H^d
        "all_H": Field(np.eye(dim) * ridge),  # Hf
        "all_H_inv": Field(np.eye(dim) / ridge),
        "all_log_det": number_field(),
        "closed_b": Field(np.zeros(dim)),  # b
        "observed_W": Field(np.zeros((dim, dim))),  # W
        "mixture_inv": Field(np.eye(dim)[None] / scales[:, None, None]),  # (λ_jI + W)⁻¹
        "mixture_log_det": Field(np.zeros(MIXTURES)),  # ln det(I + W/λ_j)
        "certificate": number_field(),  # C_t
        "set_action": scratch_field(dim),
        "set_u": scratch_field(dim),
        "set_Wu": scratch_field(dim),
        "set_phi": scratch_field(dim),  # φ̂
        "set_matrix": scratch_field(dim, dim),
    }


def set_numbers(ridge: float, delta: float, reach: float) -> dict[str, float]:
    """Return the numbers of the set: λ_H, 2 ln(J/δ), and how many widths above ⟨A, φ̂⟩ no offered action's index is."""
    return {"set_ridge": ridge, "set_level": 2.0 * math.log(MIXTURES / delta), "set_reach": reach}


@kernel
def omega(value: float, bound: float) -> float:
    """ω(z, ū) = ⅓z² + ⅓((1 − z)² − ((1 − z − ū)₊)²), the most that ⅓(z − p)² + ⅔p(1 − p) can be for p ≤ ū."""
    rest = max(0.0, 1.0 - value - bound)
    return (value * value + (1.0 - value) * (1.0 - value) - rest * rest) / 3.0


def _add_scaled_outer(matrix: Array, x: Array, scale: float) -> None:
    matrix += (scale * x)[:, None] * x


@vectorised(_add_scaled_outer)
def add_scaled_outer(matrix: Array, x: Array, scale: float) -> None:
    """Add scale·xxᵀ to a matrix."""
    dim = x.shape[0]
    for i in range(dim):
        scaled = scale * x[i]
        for j in range(dim):
            matrix[i, j] += scaled * x[j]


@kernel
def shrink_inverse(inverse: Array, x: Array, weight: float, u: Array) -> float:
    """Follow M += weight·xxᵀ in M⁻¹, by Sherman and Morrison; return ln of the growth of det M."""
    multiply(inverse, x, u)
    c = max(0.0, weight * dot(x, u, u.shape[0]))
    add_scaled_outer(inverse, u, -weight / (1.0 + c))
    return math.log1p(c)


@kernel_noinline
def absorb_round(state: State, ring: Ring, slot: int) -> None:
    """Add a round that closes to Hc, b and W, with its final value."""
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    action, u, dim = state.set_action, state.set_u, state.set_u.shape[0]
    for i in range(dim):
        action[i] = block.action[i, lane]
    value = block.credit[lane] if block.credit[lane] > 0.0 else 0.0
    weight = 1.0 / block.variance[lane]
    growth = shrink_inverse(state.closed_H_inv, action, weight, u)
    state.closed_log_det += growth
    add_scaled_outer(state.closed_H, action, weight)
    if growth > math.log1p(STEEP):
        refresh_inverse(state.closed_H, state.closed_H_inv, state.set_ridge, state.rounds)
    for i in range(dim):
        state.closed_b[i] += value * weight * action[i]
    strength = omega(value, block.bound[lane]) * weight * weight
    add_scaled_outer(state.observed_W, action, strength)
    for j in range(MIXTURES):
        state.mixture_log_det[j] += shrink_inverse(state.mixture_inv[j], action, strength, u)


@kernel_noinline
def correct_round(state: State, ring: Ring, slot: int, before: float, after: float) -> None:
    """Correct b and W where the value of a closed round changes: they become those of a round that closed with it."""
    block, lane = ring[slot // ROUNDS_PER_BLOCK], slot % ROUNDS_PER_BLOCK
    action, u, dim = state.set_action, state.set_u, state.set_u.shape[0]
    for i in range(dim):
        action[i] = block.action[i, lane]
    weight = 1.0 / block.variance[lane]
    for i in range(dim):
        state.closed_b[i] += (after - before) * weight * action[i]
    bound = block.bound[lane]
    more = omega(after, bound) - omega(before, bound)
    strength = more * weight * weight
    add_scaled_outer(state.observed_W, action, strength)
    for j in range(MIXTURES):
        multiply(state.mixture_inv[j], action, u)
        c = strength * dot(action, u, dim)
        add_scaled_outer(state.mixture_inv[j], u, -strength / (1.0 + c))
        state.mixture_log_det[j] += math.log1p(c)


@kernel
def absorb_closed_rounds(state: State, ring: Ring, now: int) -> None:
    """Learn from the rounds that close at `now`, before `expire`."""
    round = state.oldest
    while is_closing(state, ring, round, now):
        absorb_round(state, ring, slot_of(state, ring, round))
        round += 1


@kernel
def estimate_phi(state: State) -> None:
    """φ̂ = Hc⁻¹b."""
    multiply(state.closed_H_inv, state.closed_b, state.set_phi)


@kernel
def half_width(state: State, action: Array) -> float:
    """w(a); leaves u = Hc⁻¹a in state.set_u."""
    u, dim = state.set_u, state.set_u.shape[0]
    multiply(state.closed_H_inv, action, u)
    multiply(state.observed_W, u, state.set_Wu)
    observed, square = max(0.0, dot(u, state.set_Wu, dim)), dot(u, u, dim)
    least, scale = (state.set_level + state.mixture_log_det[0]) * (observed + square), 1.0
    for j in range(1, MIXTURES):
        scale *= 4.0
        least = min(least, (state.set_level + state.mixture_log_det[j]) * (observed + scale * square))
    return float(math.sqrt(least) + state.set_ridge * math.sqrt(square))


@kernel
def open_norm(state: State, action: Array) -> float:
    """‖a‖ in Hf⁻¹; overwrites state.set_Wu."""
    multiply(state.all_H_inv, action, state.set_Wu)
    return math.sqrt(max(0.0, dot(action, state.set_Wu, state.set_Wu.shape[0])))


@kernel_noinline
def index_width(state: State, action: Array) -> float:
    """h(a)·w(a), h(a) = min(1, (1 + ε)·‖a‖_{Hf⁻¹}/‖a‖_{Hc⁻¹}): less where open rounds will soon tell."""
    width = half_width(state, action)
    among_closed = math.sqrt(max(0.0, dot(action, state.set_u, state.set_u.shape[0])))
    among_all = (1.0 + SLACK) * open_norm(state, action)
    return width * (among_all / among_closed) if among_all < among_closed else width


@kernel_noinline
def record_in_set(state: State, ring: Ring, action: Array) -> None:
    """Keep ū and σ̄² of the round just played, and add it to Hf and to the certificate."""
    estimate_phi(state)
    mean, width = dot(action, state.set_phi, state.set_phi.shape[0]), half_width(state, action)
    bound = min(1.0, max(LEAST_BOUND, mean + width))
    variance = bound * (1.0 - bound) if bound < 0.5 else 0.25
    variance = max(variance, VARIANCE_FLOOR * open_norm(state, action))
    slot = slot_of(state, ring, state.rounds)
    ring[slot // ROUNDS_PER_BLOCK].bound[slot % ROUNDS_PER_BLOCK] = bound
    ring[slot // ROUNDS_PER_BLOCK].variance[slot % ROUNDS_PER_BLOCK] = variance
    is_good = state.all_log_det - state.closed_log_det <= 2.0 * math.log1p(SLACK)
    most = min(1.0, mean + state.set_reach * width) if is_good else 1.0
    state.certificate += max(0.0, most - max(0.0, mean - width))
    growth = shrink_inverse(state.all_H_inv, action, 1.0 / variance, state.set_u)
    state.all_log_det += growth
    add_scaled_outer(state.all_H, action, 1.0 / variance)
    if growth > math.log1p(STEEP):
        refresh_inverse(state.all_H, state.all_H_inv, state.set_ridge, state.rounds)
    if state.rounds % max(1024, 8 * state.set_u.shape[0]) == 0:
        refresh_set(state)


@kernel_noinline
def refresh_set(state: State) -> None:
    """Compute the inverses afresh that have drifted."""
    refresh_inverse(state.closed_H, state.closed_H_inv, state.set_ridge, state.rounds)
    refresh_inverse(state.all_H, state.all_H_inv, state.set_ridge, state.rounds)
    matrix, scale = state.set_matrix, 1.0
    for j in range(MIXTURES):
        for i in range(matrix.shape[0]):
            for k in range(matrix.shape[0]):
                matrix[i, k] = state.observed_W[i, k]
            matrix[i, i] += scale
        refresh_inverse(matrix, state.mixture_inv[j], scale, state.rounds)
        scale *= 4.0
