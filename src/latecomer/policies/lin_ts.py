"""LinTS, which takes silence for an answer: the baseline that ignores delay.

Samples θ̃_t ~ N(θ̂_t, c²·V_t⁻¹), the standard Thompson sampling of the paper's section on sampling, and plays
argmax ⟨a, θ̃_t⟩.
"""

from latecomer.core.linalg.products import argmax_first, inner_products
from latecomer.core.ridge import estimate
from latecomer.core.sampling import sample_theta
from latecomer.core.state import Array, Ring, State
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm
from latecomer.policies.base.families import ThompsonPolicy
from latecomer.policies.base.rng import Draw


def unit(state: State, pending: float) -> float:
    """β = 1, whatever is pending."""
    return 1.0


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃_t⟩ with θ̃_t ~ N(θ̂_t, c²·V_t⁻¹)."""
    estimate(state)
    sample_theta(state, state.exploration, draws)
    inner_products(actions, state.sample, scores)
    return argmax_first(scores)


ALGORITHMS["LinTS"] = Algorithm(choose=choose, width=unit, draw=Draw.NORMAL, sampled=True)


class LinTS(ThompsonPolicy):
    """Thompson sampling without regard to delay; parameters as in `OTFLinTS`.

    (Those of `ThompsonPolicy`: it has no `delta` and no `beta`.)

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.LinTS(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """
