"""WaitingLinTS: sampling from closed rounds alone (see `waiting_lin_ucb`). Consistent; the variance is a plug-in.

Samples θ̃ ~ N(θ̂, c²·v̂·V⁻¹) with v̂ = p̂(1 − p̂), p̂ the rate of the closed rounds, and plays argmax ⟨a, θ̃⟩. The paper
(Vernade et al., ICML 2020) learns at once instead.
"""

import math

from latecomer.core.choice import choose_by_sample, fill_posterior
from latecomer.core.closed_rounds import learn_from_closed_rounds
from latecomer.core.forgetting import weight_at
from latecomer.core.rates import bernoulli_variance, estimate_rate
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, ExtraFields, Ring, State, number_field
from latecomer.policies.base.algorithm import Algorithm, width, zero_pending_width
from latecomer.policies.base.families import ThompsonPolicy
from latecomer.policies.base.rng import Draw


def closed_round_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """Return the fields that count closed rounds and sum their values."""
    return {"closed_count": number_field(), "closed_value": number_field()}


def advance_time(state: State, ring: Ring, now: int) -> None:
    """Add the rounds that close at `now` to V and B."""
    closed, value = learn_from_closed_rounds(state, ring, now)
    state.closed_count += closed
    state.closed_value += value


def correct_closed_round(state: State, ring: Ring, slot: int, change: float, delay: int) -> None:
    """Correct the sum of the closed rounds' values."""
    stamp = ring[slot // ROUNDS_PER_BLOCK].stamp[slot % ROUNDS_PER_BLOCK]
    state.closed_value += change * weight_at(state, stamp) if state.forgets else change


def forget(state: State, factor: float) -> None:
    """Weigh the closed rounds by a factor."""
    state.closed_count *= factor
    state.closed_value *= factor


def sampling_variance(state: State, pending_width: float) -> float:
    """v̂ at p̂ = (conversions + 1)/(rounds + 2), over the closed rounds."""
    return bernoulli_variance(estimate_rate(state.closed_value, state.closed_count))


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃⟩ with θ̃ ~ N(θ̂, c²·v̂·V⁻¹)."""
    return choose_by_sample(state, actions, state.exploration * math.sqrt(width(state, 0.0)), draws, scores)


def posterior(state: State, ring: Ring, actions: Array, means: Array, spread: Array) -> None:
    """The law of the scores that `choose` samples."""
    fill_posterior(state, actions, state.exploration * math.sqrt(width(state, 0.0)), means, spread)


class WaitingLinTS(ThompsonPolicy):
    """Thompson sampling on closed rounds alone, which make up `V` and `B`; parameters as in `LinTS`.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.WaitingLinTS(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """

    algorithm = Algorithm(
        "WaitingLinTS",
        choose=choose,
        width=sampling_variance,
        posterior=posterior,
        pending_width=zero_pending_width,
        advance_time=advance_time,
        correct_closed_round=correct_closed_round,
        forget=forget,
        draw=Draw.NORMAL,
        needs_cholesky=True,
        learn_on_close=True,
        extra_fields=closed_round_fields,
    )
