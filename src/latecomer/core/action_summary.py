"""Summaries of action sets: the mean action of each round, and how much it varies between rounds."""

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel
from latecomer.core.linalg.products import square_of_row
from latecomer.core.state import Array, ExtraFields, Field, State, number_field, scratch_field

Shorts = npt.NDArray[np.int16]
ONE = 32767
"""The largest number of 16 bits, which stands for 1."""


def action_summary_fields(dim: int) -> ExtraFields:
    """Return the fields that sum up action sets."""
    return {
        "action_summary": scratch_field(dim + 2, dtype=np.int16),  # of the latest set
        "last_mean": Field(np.zeros(dim)),  # ā_{t−1}
        "set_count": number_field(),
        "mean_sum": Field(np.zeros(dim)),  # Σ over rounds of ā_t, the mean action of a set
        "mean_square_sum": number_field(),  # Σ ‖ā_t‖²
        "mean_change_sum": number_field(),  # Σ ½‖ā_t − ā_{t−1}‖²
        "spread_sum": number_field(),  # Σ of the mean ‖a − ā_t‖², over K − 1
    }


@kernel
def summarise_actions(actions: Array, summary: Shorts) -> None:
    """Fill in the summary of a set: ā_t and the mean ‖a − ā_t‖² as multiples of 1/32767, and K, in 16 bits each."""
    count, dim = actions.shape[0], actions.shape[1]
    mean_square, square = 0.0, 0.0
    for k in range(count):
        square += square_of_row(actions, k)
    for i in range(dim):
        total = 0.0
        for k in range(count):
            total += actions[k, i]
        mean = total / count
        summary[i] = round(min(max(mean, -1.0), 1.0) * ONE)
        mean_square += mean * mean
    summary[dim] = round(min(max(square / count - mean_square, 0.0), 1.0) * ONE)
    summary[dim + 1] = min(count, ONE)


def summarise_sums(total: Array, square: float, count: int) -> Shorts:
    """Return the summary of a set of K = `count` actions, given Σ a and Σ ‖a‖²: of a large set, those are kept."""
    mean = total / count
    spread = min(max(square / count - float(mean @ mean), 0.0), 1.0)
    whole = np.concatenate([np.round(np.clip(mean, -1.0, 1.0) * ONE), [round(spread * ONE), min(count, ONE)]])
    return whole.astype(np.int16)


@kernel
def add_summary(state: State, summary: Shorts) -> None:
    """Add the summary of the latest action set to the sums."""
    dim = state.mean_sum.shape[0]
    for i in range(dim):
        mean = summary[i] / ONE
        change = mean - state.last_mean[i] if state.set_count > 0.0 else 0.0
        state.last_mean[i] = mean
        state.mean_sum[i] += mean
        state.mean_square_sum += mean * mean
        state.mean_change_sum += 0.5 * change * change
    if summary[dim + 1] > 1:
        state.spread_sum += summary[dim] / ONE / (summary[dim + 1] - 1)
    state.set_count += 1.0


@kernel
def square_of_sum(state: State) -> float:
    """Return ‖Σ ā_t‖²."""
    square = 0.0
    for i in range(state.mean_sum.shape[0]):
        square += state.mean_sum[i] * state.mean_sum[i]
    return square


@kernel
def _relative(state: State, variance: float) -> float:
    """Divide a sum of variances of ā_t by its value for K independent draws, a Kth of the variance within a set."""
    if state.spread_sum <= 0.0:
        return 0.0
    return float(min(1.0, max(0.0, variance / state.spread_sum)))


@kernel
def diversity(state: State) -> float:
    """Return the relative variance of ā_t: 0 where every round has the same actions, 1 where it draws them anew."""
    return _relative(state, state.mean_square_sum - square_of_sum(state) / max(1.0, state.set_count))


@kernel
def freshness(state: State) -> float:
    """Return the relative change of ā_t from round to round: near 0 also where actions are exchanged but rarely."""
    return _relative(state, state.mean_change_sum)
