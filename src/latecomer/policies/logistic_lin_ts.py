"""LogisticLinTS: sampling with a logistic model of conversions, delayed. A heuristic (Laplace's approximation).

P(in-window conversion) = 1/(1 + exp(−⟨a, β⟩ − β_0)); an open round that has not converted counts as far as it matured
(see `core.logistic`). Samples β̃ ~ N(β̂, c²·H⁻¹) and plays argmax ⟨a, β̃⟩. O(m·d² + d³) a round.
"""

from latecomer.core.gram import solve_upper
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.logistic import keep_closing_rounds, logistic_fields, score_step
from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm, nothing_pending, width
from latecomer.policies.base.clock import Clock, Span
from latecomer.policies.base.families import ThompsonPolicy
from latecomer.policies.base.rng import Draw, Seed


def unit(state: State, pending: float) -> float:
    """The variance is the model's own."""
    return 1.0


def settle(state: State, ring: Ring, now: int) -> None:
    """What closes is summed up."""
    keep_closing_rounds(state, ring, now)


def prepare(state: State, ring: Ring, draws: Array) -> None:
    """β̂ moves."""
    score_step(state, ring)


def estimate(state: State) -> None:
    """β̂, as of the latest decision."""
    for i in range(state.B.shape[0]):
        state.theta_hat[i] = state.beta[i]


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, β̃⟩ + β̃_0 with β̃ ~ N(β̂, c²·H⁻¹)."""
    dim = state.B.shape[0]
    for i in range(dim + 1):
        state.descent[i] = state.exploration * width(state, 0.0) * draws[i]
    solve_upper(state.factor, state.descent)
    for i in range(dim):
        state.sample[i] = state.beta[i] + state.descent[i]
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, state.sample) + state.beta[dim] + state.descent[dim]
    return argmax_first(scores)


ALGORITHMS["LogisticLinTS"] = Algorithm(
    choose=choose,
    width=unit,
    pending=nothing_pending,
    settle=settle,
    prepare=prepare,
    estimate=estimate,
    draw=Draw.NORMAL_AND_ONE,
    extras=logistic_fields,
)


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

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 0.1,
        exploration: float = 1.0,
        seed: Seed = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(dim, window, ridge=ridge, exploration=exploration, seed=seed, clock=clock)
