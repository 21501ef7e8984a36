"""LinUCB (Abbasi-Yadkori et al. 2011), which takes silence for an answer: the baseline that ignores delay.

Plays argmax ⟨a, θ̂_t⟩ + c·f_{t,δ}·‖a‖_{V_t⁻¹}, f as in Eq. 3 of the paper (Vernade et al., ICML 2020). Under delays θ̂_t
is biased low, and nothing here allows for it.
"""

from latecomer.core.choice import choose_by_upper_bound
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import radius
from latecomer.policies.base.algorithm import Algorithm, width
from latecomer.policies.base.families import UCBPolicy


def undelayed_radius(state: State, pending_width: float) -> float:
    """f_{t,δ}, Eq. 3, whatever is pending."""
    return radius(state.rounds + 1, state.B.shape[0], state.ridge, state.delta)


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̂_t⟩ + c·f_{t,δ}·‖a‖_{V_t⁻¹}."""
    return choose_by_upper_bound(state, actions, state.exploration * width(state, 0.0), scores)


class LinUCB(UCBPolicy):
    """Optimism without regard to delay, radius f; parameters as in `OTFLinUCB`.

    Examples
    --------
    >>> import latecomer as lc
    >>> lc.LinUCB(dim=2, window=100).decide([[1.0, 0.0], [0.0, 1.0]]).index
    0
    """

    algorithm = Algorithm("LinUCB", choose=choose, width=undelayed_radius)
