"""MaturedLinTS: an open round counts as far as its feedback has matured. A heuristic.

E[Y_s by age g] = F_m(g)·τ_m⟨A_s, θ⟩, so with G = λI + Σ F̂_m(age_s) A_sA_sᵀ and θ̂ = G⁻¹B silence is no longer taken for
an answer, and the sum over open rounds of the paper (Vernade et al., ICML 2020) disappears. Samples
θ̃ ~ N(θ̂, c²·v̂·G⁻¹), v̂ = p̂(1 − p̂), and plays argmax ⟨a, θ̃⟩ + b·‖a‖²_{V⁻¹}. Six refinements, all off by default, make
up `recommended`:

- `optimism`, b: as if every direction had b conversions more, since for small counts a Gaussian is too narrow. V counts
  a round as soon as it is played, so that a direction that waits for its feedback is not explored twice.
- `prior`, w: θ̂ is shrunk not to 0 but to where the mean action converts at w times the mean rate.
- `shrinkage`, s: where contexts vary and the data agree with the prior, λ grows up to s times (`core.shrinkage`).
  Neither counts after a change.
- `context_discount`: where contexts vary from round to round they explore by themselves, and c and b are multiplied
  by 1 minus up to that share; b by that of `optimism_discount`, where that is another.
- `final_exploration`, c_∞: where actions stay the same, c falls to it as conversions come, half of the way at
  `HALFWAY` of them. The first conversions are too few for a Gaussian; later ones need less than its full width.
- `false_alarms`, α: with a half-life, what is older than a suspected change is set aside, then dropped
  (`core.change_detection`).
"""

import math
from typing import Unpack

from latecomer.core.action_summary import Shorts, action_summary_fields, add_summary, diversity
from latecomer.core.age_buckets import DETECTS
from latecomer.core.change_detection import detect_change
from latecomer.core.delay_curve import count_closed_delay
from latecomer.core.forgetting import weigh_advance
from latecomer.core.jit import kernel
from latecomer.core.linalg.norms import squared_norms
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.maturity import conversion_rate, forget_maturity, maturity_fields, update_maturity
from latecomer.core.rates import bernoulli_variance
from latecomer.core.sampling import spread_scores
from latecomer.core.shrinkage import half_estimate, shrinkage_fields, shrunk_estimate, update_ridge
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.core.weighted_gram import sample_from_gram
from latecomer.errors import InputError
from latecomer.policies.base.algorithm import Algorithm, width, zero_pending_width
from latecomer.policies.base.clock import Span
from latecomer.policies.base.parameters import CommonParameters
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.rng import Draw
from latecomer.validation import check_at_least_one, check_nonnegative, check_share

HALFWAY = 20.0
"""The conversions at which c is halfway to c_∞."""


def extra_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """Return the fields of the matured Gram matrix, the action summaries and the shrinkage."""
    return {**maturity_fields(dim, span, ridge), **action_summary_fields(dim), **shrinkage_fields()}


def sampling_variance(state: State, pending_width: float) -> float:
    """v̂, a Bernoulli's variance at the mean rate."""
    return bernoulli_variance(conversion_rate(state))


def observe_actions(state: State, summary: Shorts) -> None:
    """Add the summary of the action set to the sums."""
    add_summary(state, summary)


def advance_time(state: State, ring: Ring, now: int) -> None:
    """Weigh every round by its maturity at `now`; drop what is older than a change."""
    update_maturity(state, ring, now)
    if state.forgets == DETECTS:
        follow_change(state, now)


@kernel
def follow_change(state: State, now: int) -> None:
    """Estimate from the rounds since a change alone, where one is suspected or detected."""
    if detect_change(state, now):
        state.ridge_growth, state.ridge_due = 1.0, 0


def begin_round(state: State, ring: Ring, draws: Array) -> None:
    """Estimate the ridge again where it is due."""
    update_ridge(state)


def correct_closed_round(state: State, ring: Ring, slot: int, change: float, delay: int) -> None:
    """Count the delay of a conversion that came in the grace; G had the round in full before."""
    count_closed_delay(state, delay)


def forget(state: State, factor: float) -> None:
    """Weigh all rounds in G by a factor."""
    forget_maturity(state, factor)


def estimate(state: State) -> None:
    """θ̂ = (G + (λ − λ_0)I)⁻¹(B + λθ_0)."""
    shrunk_estimate(state)


def sampling_scale(state: State) -> float:
    """c_t·√v̂, c_t = c less the context discount, and where actions stay the same on its way to c_∞."""
    varied = diversity(state)
    fall = (state.exploration - state.final_exploration) * (state.credited / (HALFWAY + state.credited))
    c = (1.0 - state.context_discount * varied) * state.exploration - (1.0 - varied) * fall
    return float(c * math.sqrt(width(state, 0.0)))


def square_bonus(state: State) -> float:
    """b, less the discount."""
    return float((1.0 - state.optimism_discount * diversity(state)) * weigh_advance(state, state.optimism))


def score_optimistically(state: State, actions: Array, theta: Array, scores: Array) -> None:
    """⟨a, θ⟩ + b·‖a‖²_{V⁻¹}."""
    squared_norms(state.V_inv, actions, scores)
    bonus = square_bonus(state)
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, theta) + bonus * scores[k]


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃⟩ + b·‖a‖²_{V⁻¹} with θ̃ ~ N(θ̂, c_t²·v̂·G⁻¹)."""
    half_estimate(state)
    sample_from_gram(state, sampling_scale(state), draws)
    score_optimistically(state, actions, state.sample, scores)
    return argmax_first(scores)


def posterior(state: State, ring: Ring, actions: Array, means: Array, spread: Array) -> None:
    """The law of the scores that `choose` samples."""
    shrunk_estimate(state)
    score_optimistically(state, actions, state.theta_hat, means)
    spread_scores(state.factor, actions, sampling_scale(state), spread)


class MaturedLinTS(LinearPolicy):
    """Posterior sampling that weighs every round by the share of its feedback that is due.

    `dim`, `window`, `ridge`, `exploration` and `**common` are as in `OTFLinTS`.

    Parameters
    ----------
    optimism
        b ≥ 0: conversions that every direction is given in advance.
    prior
        w ≥ 0: the share of the mean rate that the mean action is taken to have before there is evidence.
    shrinkage
        s ≥ 1: how many times the ridge may grow where contexts vary and the data agree with the prior.
    context_discount
        In [0, 1]: the share of exploration that is left out where contexts vary.
    optimism_discount
        In [0, 1]: the share of `optimism` that is left out there; that of `context_discount` unless it is given.
    final_exploration
        c_∞ in [0, c]: where actions stay the same, the exploration once many conversions have come; c, unless given.
    false_alarms
        In [0, 1]: with a `half_life`, suspect and detect changes, and drop what is older; of tests by chance, about
        this share per half-life and scale rings at once. 0: detect none. Beyond 32 dimensions none is detected.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.MaturedLinTS(dim=2, window=100, seed=0)
    >>> policy.decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """

    algorithm = Algorithm(
        "MaturedLinTS",
        choose=choose,
        width=sampling_variance,
        posterior=posterior,
        square_bonus=square_bonus,
        pending_width=zero_pending_width,
        observe_actions=observe_actions,
        advance_time=advance_time,
        correct_closed_round=correct_closed_round,
        forget=forget,
        begin_round=begin_round,
        estimate=estimate,
        draw=Draw.NORMAL,
        needs_arrival_times=True,
        extra_fields=extra_fields,
    )

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 1.0,
        exploration: float = 1.0,
        optimism: float = 0.0,
        prior: float = 0.0,
        shrinkage: float = 1.0,
        context_discount: float = 0.0,
        optimism_discount: float | None = None,
        final_exploration: float | None = None,
        false_alarms: float = 0.0,
        **common: Unpack[CommonParameters],
    ) -> None:
        exploration = check_nonnegative("exploration", exploration)
        context_discount = check_share("context_discount", context_discount)
        if optimism_discount is None:
            optimism_discount = context_discount
        super().__init__(
            dim,
            window,
            ridge=ridge,
            numbers={
                "exploration": exploration,
                "optimism": check_nonnegative("optimism", optimism),
                "prior": check_nonnegative("prior", prior),
                "shrinkage": check_at_least_one("shrinkage", shrinkage),
                "context_discount": context_discount,
                "optimism_discount": check_share("optimism_discount", optimism_discount),
                "final_exploration": _check_final(final_exploration, exploration),
                "false_alarms": check_share("false_alarms", false_alarms),
            },
            **common,
        )


def _check_final(final: float | None, exploration: float) -> float:
    final = exploration if final is None else check_nonnegative("final_exploration", final)
    if final > exploration:
        raise InputError(
            f"final_exploration must be at most exploration, {exploration:g}; got {final:g}", field="final_exploration"
        )
    return final
