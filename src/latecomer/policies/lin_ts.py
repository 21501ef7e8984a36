"""LinTS, which takes silence for an answer: the baseline that ignores delay.

Samples θ̃_t ~ N(θ̂_t, c²·V_t⁻¹), the standard Thompson sampling of the paper's section on sampling (Vernade et al.,
ICML 2020), and plays argmax ⟨a, θ̃_t⟩.
"""

from latecomer.core.choice import choose_by_sample, fill_posterior
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import unit_width
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.families import ThompsonPolicy
from latecomer.policies.base.rng import Draw


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̃_t⟩ with θ̃_t ~ N(θ̂_t, c²·V_t⁻¹)."""
    return choose_by_sample(state, actions, state.exploration, draws, scores)


def posterior(state: State, ring: Ring, actions: Array, means: Array, spread: Array) -> None:
    """The law of the scores that `choose` samples."""
    fill_posterior(state, actions, state.exploration, means, spread)


class LinTS(ThompsonPolicy):
    """Thompson sampling without regard to delay; parameters as in `OTFLinTS`, but for `delta` and `beta`.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.LinTS(dim=2, window=100, seed=0).decide([[1.0, 0.0], [0.0, 1.0]]).round
    1
    """

    algorithm = Algorithm(
        "LinTS", choose=choose, width=unit_width, posterior=posterior, draw=Draw.NORMAL, needs_cholesky=True
    )
