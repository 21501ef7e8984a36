"""OTFLinUCB: optimism on the fly (the paper's Algorithm 1).

Plays argmax ⟨a, θ̂_t⟩ + c·α_t·‖a‖_{V_t⁻¹} with α_t = 2f_{t,δ} + W_t. A theorem: with c = 1 the regret obeys Theorem 2.
"""

import math
from typing import Literal

from latecomer.core.linalg.norms import squared_norms
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.ridge import estimate
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import pending_width, radius
from latecomer.policies.base.algorithm import ALGORITHMS, Algorithm, width
from latecomer.policies.base.clock import Clock, Span
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.tight_width import TIGHT
from latecomer.validation import check_choice, check_nonnegative, check_probability


def alpha(state: State, pending: float) -> float:
    """α_t = 2f_{t,δ} + W_t, Theorem 1."""
    return 2.0 * radius(state.rounds + 1, state.B.shape[0], state.ridge, state.delta) + pending


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """U_t(a) = ⟨a, θ̂_t⟩ + c·α_t·‖a‖_{V_t⁻¹}, Eq. 4."""
    reach = state.exploration * width(state, pending_width(state))
    estimate(state)
    squared_norms(state.V_inv, actions, scores)
    for k in range(actions.shape[0]):
        scores[k] = row_dot(actions, k, state.theta_hat) + reach * math.sqrt(scores[k])
    return argmax_first(scores)


ALGORITHMS["OTFLinUCB"] = Algorithm(choose=choose, width=alpha)


class OTFLinUCB(LinearPolicy):
    """Optimism that widens for what may still be on its way.

    Parameters
    ----------
    dim
        d, the number of features of an action.
    window
        m: how long a decision may wait for its conversion; rounds (an int) or a time ("7d", or a `timedelta`).
    ridge
        λ > 0. The regret bound needs λ ≥ 1.
    delta
        δ: the confidence set holds at every round with probability at least 1 − 2δ.
    width
        "exact" sums ‖A_s‖ in V_t⁻¹ over the window, O(m·d) a round; "buffered" freezes each norm when its action is
        played, O(1) a round and never smaller; "tight" bounds what open rounds can still add to each action, O(K·m·d)
        (see `latecomer.policies.tight_width`).
    exploration
        c, a multiplier of the bonus; 1 is the theorem.
    clock
        Where the window is a time: what tells the time when `at` is not given.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.OTFLinUCB(dim=2, window=100)
    >>> decision = policy.decide([[1.0, 0.0], [0.0, 1.0]])
    >>> decision.index, policy.convert(decision).name
    (0, 'ACCEPTED')
    """

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 1.0,
        delta: float = 0.1,
        width: Literal["exact", "buffered", "tight"] = "exact",
        exploration: float = 1.0,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            dim,
            window,
            ridge=ridge,
            tag=TIGHT if check_choice("width", width, ("exact", "buffered", "tight")) == "tight" else None,
            exact=width == "exact",
            numbers={
                "delta": check_probability("delta", delta),
                "exploration": check_nonnegative("exploration", exploration),
            },
            options={"width": width},
            clock=clock,
        )
