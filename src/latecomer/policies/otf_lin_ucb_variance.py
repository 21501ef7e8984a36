"""The variance-aware width of OTFLinUCB: a theorem, and an answer to the paper's open question.

The paper (Vernade et al., ICML 2020) bounds the regret from above with 1/τ_m and from below with 1/√τ_m. Where a window
keeps few conversions they are rare, and rare events have little variance. This width learns from closed rounds, weights
each by 1/σ̄², an upper bound of its variance, and takes the confidence set of `latecomer.core.confidence_set`:

    U_t(a) = ⟨a, φ̂⟩ + c·h(a)·w(a).

With c = 1 the regret is Õ(d√(T/τ_m) + d²/τ_m + md) with probability 1 − 2δ: docs/explanation/theory/variance-width.md
has the proof. A round counts with the value that it has when it closes: a conversion revoked until then never was.
"""

import math

from latecomer.core.confidence_set import (
    ROUND_FIELDS,
    absorb_closed_rounds,
    correct_round,
    estimate_phi,
    index_width,
    record_in_set,
    set_fields,
)
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.policies.base.algorithm import Algorithm, zero_pending_width


def extra_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """Return the fields of the confidence set, with λ_H = λ."""
    return set_fields(dim, ridge)


def root_of_level(state: State, pending_width: float) -> float:
    """√γ_0, the factor of the width at λ_0 = 1."""
    return math.sqrt(state.set_level + state.mixture_log_det[0])


def estimate(state: State) -> None:
    """φ̂, from the closed rounds."""
    estimate_phi(state)
    for i in range(state.theta_hat.shape[0]):
        state.theta_hat[i] = state.set_phi[i]


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, φ̂⟩ + c·h(a)·w(a)."""
    estimate_phi(state)
    for k in range(actions.shape[0]):
        bonus = state.exploration * index_width(state, actions[k])
        scores[k] = row_dot(actions, k, state.set_phi) + bonus
    return argmax_first(scores)


VARIANCE = Algorithm(
    "OTFLinUCB, variance",
    choose=choose,
    width=root_of_level,
    pending_width=zero_pending_width,
    estimate=estimate,
    advance_set=absorb_closed_rounds,
    record_in_set=record_in_set,
    correct_set=correct_round,
    round_fields=ROUND_FIELDS,
    extra_fields=extra_fields,
)
