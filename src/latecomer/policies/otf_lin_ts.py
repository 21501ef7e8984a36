"""OTFLinTS: sampling on the fly, Algorithm 2 of the paper (Vernade et al., ICML 2020).

Samples θ̃_t ~ N(θ̂_t, c²·β_t·V_t⁻¹) and plays argmax ⟨a, θ̃_t⟩, with β_t from the buffered W_t. A heuristic.
"""

import math
from typing import Literal, Unpack

from latecomer.core.choice import choose_by_sample, fill_posterior
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import pending_width, radius
from latecomer.policies.base.algorithm import Algorithm, width
from latecomer.policies.base.clock import Span
from latecomer.policies.base.parameters import CommonParameters
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.rng import Draw
from latecomer.validation import check_choice, check_nonnegative, check_probability

BETAS = ("heuristic", "conservative", "confidence")


def beta(state: State, pending_width: float) -> float:
    """β_t: 1 + W/f (Algorithm 2), f + W (the text's remark, literally), or (f + W)² (the remark, as a confidence set).

    Differs from the paper's text, which has V_t⁻¹ where Algorithm 2 has V_s⁻¹: this follows Algorithm 2 (buffered W).
    """
    f = radius(state.rounds + 1, state.B.shape[0], state.ridge, state.delta)
    if state.beta == 0.0:
        return 1.0 + pending_width / f
    if state.beta == 1.0:
        return f + pending_width
    return (f + pending_width) * (f + pending_width)


def sampling_scale(state: State) -> float:
    """c·√β_t."""
    return float(state.exploration * math.sqrt(width(state, pending_width(state))))


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃_t⟩ with θ̃_t ~ N(θ̂_t, c²·β_t·V_t⁻¹)."""
    return choose_by_sample(state, actions, sampling_scale(state), draws, scores)


def posterior(state: State, ring: Ring, actions: Array, means: Array, spread: Array) -> None:
    """The law of the scores that `choose` samples."""
    fill_posterior(state, actions, sampling_scale(state), means, spread)


class OTFLinTS(LinearPolicy):
    """Posterior sampling with a variance that grows with the conversions that may still arrive.

    Algorithm 2 of Vernade et al. (ICML 2020).

    Parameters
    ----------
    dim
        d, the number of features of an action.
    window
        m: how long a decision may wait for its conversion; rounds (an int) or a time ("7d", or a `timedelta`).
    ridge
        λ > 0.
    delta
        δ, as in f_{t,δ}.
    beta
        "heuristic" (Algorithm 2), "conservative" or "confidence": three readings of the paper, ever wider.
    exploration
        c, a multiplier of the standard deviation; 1 is the paper's.
    **common
        `seed`, `clock`, `floor`, `draws`, `control` and `guard`, as in `LinearPolicy`.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.OTFLinTS(dim=2, window=100, seed=0)
    >>> policy.decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """

    algorithm = Algorithm(
        "OTFLinTS", choose=choose, width=beta, posterior=posterior, draw=Draw.NORMAL, needs_cholesky=True
    )

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 1.0,
        delta: float = 0.1,
        beta: Literal["heuristic", "conservative", "confidence"] = "heuristic",
        exploration: float = 1.0,
        **common: Unpack[CommonParameters],
    ) -> None:
        super().__init__(
            dim,
            window,
            ridge=ridge,
            numbers={
                "delta": check_probability("delta", delta),
                "exploration": check_nonnegative("exploration", exploration),
                "beta": BETAS.index(check_choice("beta", beta, BETAS)),
            },
            options={"beta": beta},
            **common,
        )
