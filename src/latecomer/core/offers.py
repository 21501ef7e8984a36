"""What is on offer, round after round: a common direction to shrink to, and how much exploring contexts do for us."""

import math

import numpy as np
import numpy.typing as npt

from latecomer.core.compile import kernel
from latecomer.core.gram import gram_solve
from latecomer.core.maturity import rate
from latecomer.core.state import Array, Extras, State

Shorts = npt.NDArray[np.int16]
WHOLE = 32767
"""The largest number of 16 bits, which stands for 1."""


def offer_extras(dim: int) -> Extras:
    """What a policy keeps of the action sets that it was offered."""
    return {
        "offer": np.zeros(dim + 2, np.int16),  # the summary of the latest
        "offers": np.zeros(()),  # how many there were
        "offered": np.zeros(dim),  # Σ over rounds of ā_t, the mean action on offer
        "offered_square": np.zeros(()),  # Σ ‖ā_t‖²
        "offered_spread": np.zeros(()),  # Σ of the mean ‖a − ā_t‖², over K − 1
    }


@kernel
def summarise(actions: Array, summary: Shorts) -> None:
    """What a log keeps of an offer: ā_t and the mean ‖a − ā_t‖² as multiples of 1/32767, and K, in 16 bits each."""
    count, dim = actions.shape[0], actions.shape[1]
    mean_square, square = 0.0, 0.0
    for i in range(dim):
        total = 0.0
        for k in range(count):
            total += actions[k, i]
            square += actions[k, i] * actions[k, i]
        mean = total / count
        summary[i] = round(min(max(mean, -1.0), 1.0) * WHOLE)
        mean_square += mean * mean
    summary[dim] = round(min(max(square / count - mean_square, 0.0), 1.0) * WHOLE)
    summary[dim + 1] = min(count, WHOLE)


@kernel
def keep_offer(state: State) -> None:
    """The latest offer, whose summary is in state.offer, joins the others."""
    dim = state.offered.shape[0]
    for i in range(dim):
        mean = state.offer[i] / WHOLE
        state.offered[i] += mean
        state.offered_square += mean * mean
    if state.offer[dim + 1] > 1:
        state.offered_spread += state.offer[dim] / WHOLE / (state.offer[dim + 1] - 1)
    state.offers += 1.0


@kernel
def _square_of_sum(state: State) -> float:
    square = 0.0
    for i in range(state.offered.shape[0]):
        square += state.offered[i] * state.offered[i]
    return square


@kernel
def diversity(state: State) -> float:
    """From 0, where every round offers the same actions, to 1, where it draws them anew.

    It is the variance of ā_t over rounds, relative to what it would be for K independent draws: a Kth of the variance
    within a set.
    """
    if state.offered_spread <= 0.0:
        return 0.0
    between = state.offered_square - _square_of_sum(state) / state.offers
    return float(min(1.0, max(0.0, between / state.offered_spread)))


@kernel
def shrunk_estimate(state: State) -> None:
    """state.theta_hat = G⁻¹(B + λθ_0), θ_0 = w·p̂·ā/‖ā‖²: under θ_0 the mean action ā converts at w times the mean rate.

    ‖θ_0‖ is kept to w·p̂·√d: where actions point everywhere there is no common direction.
    """
    dim, square = state.B.shape[0], _square_of_sum(state)
    scale = 0.0
    if square > 0.0:
        scale = state.prior * rate(state) * min(state.offers / square, math.sqrt(dim / square))
    for i in range(dim):
        state.theta_hat[i] = state.B[i] + state.ridge * scale * state.offered[i]
    gram_solve(state)
