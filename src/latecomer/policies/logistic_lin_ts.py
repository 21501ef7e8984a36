"""LogisticLinTS: sampling with a logistic model of conversions, delayed. A heuristic (Laplace's approximation).

P(in-window conversion) = 1/(1 + exp(−⟨a, β⟩ − β_0)); an open round that has not converted counts as far as it matured
(see `core.logistic`). Samples β̃ ~ N(β̂, c²·H⁻¹) and plays argmax ⟨a, β̃⟩. O(m·d² + d³) a round. The window is that of
the paper (Vernade et al., ICML 2020); its linear model is replaced.
"""

from typing import Unpack

from latecomer.core.delay_curve import count_closed_delay
from latecomer.core.linalg.cholesky import solve_upper, whiten
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.logistic import correct_value, keep_closing_rounds, logistic_fields, update_beta
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import unit_width
from latecomer.policies.base.algorithm import Algorithm, width, zero_pending_width
from latecomer.policies.base.clock import Span
from latecomer.policies.base.families import ThompsonPolicy
from latecomer.policies.base.parameters import CommonParameters
from latecomer.policies.base.rng import Draw


def advance_time(state: State, ring: Ring, now: int) -> None:
    """Add the rounds that close at `now` to the quadratic."""
    keep_closing_rounds(state, ring, now)


def correct_closed_round(state: State, ring: Ring, slot: int, change: float, delay: int) -> None:
    """Correct the quadratic, whose step was taken at the β of the closing, and count the conversion's delay."""
    correct_value(state, ring, slot, change)
    count_closed_delay(state, delay)


def begin_round(state: State, ring: Ring, draws: Array) -> None:
    """Take one step of Fisher scoring towards β̂."""
    update_beta(state, ring)


def estimate(state: State) -> None:
    """β̂, as of the latest decision."""
    for i in range(state.B.shape[0]):
        state.theta_hat[i] = state.beta[i]


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, β̃⟩ + β̃_0 with β̃ ~ N(β̂, c²·H⁻¹)."""
    dim = state.B.shape[0]
    for i in range(dim + 1):
        state.newton_step[i] = state.exploration * width(state, 0.0) * draws[i]
    solve_upper(state.factor, state.newton_step)
    for i in range(dim):
        state.sample[i] = state.beta[i] + state.newton_step[i]
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, state.sample) + state.beta[dim] + state.newton_step[dim]
    return argmax_first(scores)


def posterior(state: State, ring: Ring, actions: Array, means: Array, spread: Array) -> None:
    """The law of the scores that `choose` samples; the intercept is the last feature of each action, 1."""
    dim, scale = state.B.shape[0], state.exploration * width(state, 0.0)
    for k in range(actions.shape[0]):
        mean = state.beta[dim]
        for i in range(dim):
            mean += actions[k, i] * state.beta[i]
            spread[i, k] = scale * actions[k, i]
        means[k] = mean
        spread[dim, k] = scale
    whiten(state.factor, spread)


class LogisticLinTS(ThompsonPolicy):
    """Posterior sampling in a logistic model; `theta_hat` is β̂, and a decision's score is in logits.

    Parameters as in `LinTS`, and `ridge` is the precision of the prior on β: a rate of 1 % is a logit of
    −4.6, so that it should be small.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.LogisticLinTS(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """

    algorithm = Algorithm(
        "LogisticLinTS",
        choose=choose,
        width=unit_width,
        posterior=posterior,
        pending_width=zero_pending_width,
        advance_time=advance_time,
        correct_closed_round=correct_closed_round,
        forget=None,
        begin_round=begin_round,
        estimate=estimate,
        draw=Draw.NORMAL_AND_ONE,
        needs_arrival_times=True,
        extra_fields=logistic_fields,
    )

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 0.1,
        exploration: float = 1.0,
        **common: Unpack[CommonParameters],
    ) -> None:
        super().__init__(dim, window, ridge=ridge, exploration=exploration, **common)
