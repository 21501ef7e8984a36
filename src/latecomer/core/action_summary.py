"""What is on offer, round after round: the mean action, and how much it varies."""

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel
from latecomer.core.state import Array, ExtraFields, State

Shorts = npt.NDArray[np.int16]
WHOLE = 32767
"""The largest number of 16 bits, which stands for 1."""


def action_summary_fields(dim: int) -> ExtraFields:
    """What a policy keeps of the action sets that it was offered."""
    return {
        "offer": np.zeros(dim + 2, np.int16),  # the summary of the latest
        "last_mean": np.zeros(dim),  # ā_{t−1}
        "offers": np.zeros(()),  # how many there were
        "offered": np.zeros(dim),  # Σ over rounds of ā_t, the mean action on offer
        "offered_square": np.zeros(()),  # Σ ‖ā_t‖²
        "offered_change": np.zeros(()),  # Σ ½‖ā_t − ā_{t−1}‖²
        "offered_spread": np.zeros(()),  # Σ of the mean ‖a − ā_t‖², over K − 1
    }


@kernel
def summarise_actions(actions: Array, summary: Shorts) -> None:
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
def add_summary(state: State) -> None:
    """The latest offer, whose summary is in state.offer, joins the others."""
    dim = state.offered.shape[0]
    for i in range(dim):
        mean = state.offer[i] / WHOLE
        change = mean - state.last_mean[i] if state.offers > 0.0 else 0.0
        state.last_mean[i] = mean
        state.offered[i] += mean
        state.offered_square += mean * mean
        state.offered_change += 0.5 * change * change
    if state.offer[dim + 1] > 1:
        state.offered_spread += state.offer[dim] / WHOLE / (state.offer[dim + 1] - 1)
    state.offers += 1.0


@kernel
def square_of_sum(state: State) -> float:
    """‖Σ ā_t‖²."""
    square = 0.0
    for i in range(state.offered.shape[0]):
        square += state.offered[i] * state.offered[i]
    return square


@kernel
def _relative(state: State, variance: float) -> float:
    """A sum of variances of ā_t, relative to what it would be for K independent draws: a Kth of that within a set."""
    if state.offered_spread <= 0.0:
        return 0.0
    return float(min(1.0, max(0.0, variance / state.offered_spread)))


@kernel
def diversity(state: State) -> float:
    """From 0, where every round offers the same actions, to 1, where it draws them anew: the variance of ā_t."""
    return _relative(state, state.offered_square - square_of_sum(state) / max(1.0, state.offers))


@kernel
def freshness(state: State) -> float:
    """The same from one round to the next: near 0 also where actions stay for long and are then exchanged."""
    return _relative(state, state.offered_change)
