"""MaturedLinTS: an open round counts as far as its feedback has matured. A heuristic.

E[Y_s by age g] = F_m(g)·τ_m⟨A_s, θ⟩, so with G = λI + Σ F̂_m(age_s) A_sA_sᵀ and θ̂ = G⁻¹B silence is no longer taken for
an answer, and the paper's sum over open rounds disappears. Samples θ̃ ~ N(θ̂, c²·v̂·G⁻¹), v̂ = p̂(1 − p̂), and plays
argmax ⟨a, θ̃⟩ + b·‖a‖²_{V⁻¹}. Four refinements, all off by default, make up what `recommended` plays:

- `optimism`, b: as if every direction had b conversions that nobody has seen, since for small counts a Gaussian is too
  sure. V counts a round as soon as it is played: what is on its way is not asked for twice.
- `prior`, w: θ̂ is shrunk not to 0 but to where the mean action converts at w times the mean rate.
- `shrinkage`, s: where contexts vary and the data agree with that, λ grows up to s times (`core.shrinkage`).
- `thrift`: where contexts vary from round to round they explore for us, and c and b are cut by up to that share.
"""

import math

from latecomer.core.action_summary import action_summary_fields, add_summary, diversity, summarise_actions
from latecomer.core.gram import gram_draw
from latecomer.core.linalg.norms import squared_norms
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.maturity import conversion_rate, maturity_fields, update_maturity
from latecomer.core.shrinkage import shrinkage_fields, shrunk_estimate, update_ridge
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm, nothing_pending, width
from latecomer.policies.base.clock import Clock, Span
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.rng import Draw, Seed
from latecomer.validation import check_at_least_one, check_nonnegative, check_share


def extras(dim: int, span: int, ridge: float) -> ExtraFields:
    """The matured Gram matrix, and what was on offer."""
    return {**maturity_fields(dim, span, ridge), **action_summary_fields(dim), **shrinkage_fields()}


def spread(state: State, pending: float) -> float:
    """v̂ = p̂(1 − p̂), a Bernoulli's variance at the mean rate."""
    return conversion_rate(state) * (1.0 - conversion_rate(state))


def hear(state: State, offer: Array) -> None:
    """What is on offer, summed up."""
    summarise_actions(offer, state.offer)


def recall(state: State, offer: Array) -> None:
    """The same from a log."""
    for i in range(state.offer.shape[0]):
        state.offer[i] = offer[i]


def settle(state: State, ring: Ring, now: int) -> None:
    """Older rounds weigh more."""
    update_maturity(state, ring, now)


def prepare(state: State, ring: Ring, draws: Array) -> None:
    """The offer counts, and the ridge follows."""
    add_summary(state)
    update_ridge(state)


def estimate(state: State) -> None:
    """θ̂ = (G + (λ − λ_0)I)⁻¹(B + λθ_0)."""
    shrunk_estimate(state)


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃⟩ + b·‖a‖²_{V⁻¹} with θ̃ ~ N(θ̂, c²·v̂·G⁻¹)."""
    shrunk_estimate(state)
    zeal = 1.0 - state.thrift * diversity(state)
    gram_draw(state, zeal * state.exploration * math.sqrt(width(state, 0.0)), draws)
    squared_norms(state.V_inv, actions, scores)
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, state.sample) + zeal * state.optimism * scores[k]
    return argmax_first(scores)


ALGORITHMS["MaturedLinTS"] = Algorithm(
    choose=choose,
    width=spread,
    pending=nothing_pending,
    settle=settle,
    prepare=prepare,
    hear=hear,
    recall=recall,
    estimate=estimate,
    draw=Draw.NORMAL,
    extras=extras,
)


class MaturedLinTS(LinearPolicy):
    """Posterior sampling that weighs every round by how much of its feedback should have come.

    `dim`, `window`, `ridge`, `exploration`, `seed` and `clock` are as in `OTFLinTS`.

    Parameters
    ----------
    optimism
        b ≥ 0: conversions that every direction is given in advance.
    prior
        w ≥ 0: the share of the mean rate that the mean action is taken to have before there is evidence.
    shrinkage
        s ≥ 1: how many times the ridge may grow where contexts vary and the data agree with the prior.
    thrift
        In [0, 1]: the share of exploration that is saved where contexts vary.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.MaturedLinTS(dim=2, window=100, seed=0)
    >>> policy.decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """

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
        thrift: float = 0.0,
        seed: Seed = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            dim,
            window,
            ridge=ridge,
            numbers={
                "exploration": check_nonnegative("exploration", exploration),
                "optimism": check_nonnegative("optimism", optimism),
                "prior": check_nonnegative("prior", prior),
                "shrinkage": check_at_least_one("shrinkage", shrinkage),
                "thrift": check_share("thrift", thrift),
            },
            seed=seed,
            clock=clock,
        )
