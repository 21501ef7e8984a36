"""OTFLinUCB: optimism on the fly, Algorithm 1 of the paper (Vernade et al., ICML 2020).

Plays argmax ⟨a, θ̂_t⟩ + c·α_t·‖a‖_{V_t⁻¹} with α_t = 2f_{t,δ} + W_t. A theorem: with c = 1 the regret obeys Theorem 2.
"""

from typing import Literal, Unpack

from latecomer.core.choice import choose_by_upper_bound
from latecomer.core.confidence_set import set_numbers
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import pending_width, radius
from latecomer.policies.base.algorithm import Algorithm, width
from latecomer.policies.base.clock import Span
from latecomer.policies.base.parameters import CommonParameters
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.otf_lin_ucb_tight import TIGHT
from latecomer.policies.otf_lin_ucb_variance import VARIANCE
from latecomer.validation import check_choice, check_nonnegative, check_positive, check_probability

WIDTHS = ("exact", "buffered", "tight", "variance")


def alpha(state: State, pending_width: float) -> float:
    """α_t = 2f_{t,δ} + W_t, Theorem 1."""
    return 2.0 * radius(state.rounds + 1, state.B.shape[0], state.ridge, state.delta) + pending_width


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """U_t(a) = ⟨a, θ̂_t⟩ + c·α_t·‖a‖_{V_t⁻¹}, Eq. 4."""
    bonus_scale = state.exploration * width(state, pending_width(state))
    return choose_by_upper_bound(state, actions, bonus_scale, scores)


class OTFLinUCB(LinearPolicy):
    """Optimism that widens for conversions that may still arrive.

    Algorithm 1 of Vernade et al. (ICML 2020).

    Parameters
    ----------
    dim
        d, the number of features of an action.
    window
        m: how long a decision may wait for its conversion; rounds (an int) or a time ("7d", or a `timedelta`).
    ridge
        λ > 0. The regret bound needs λ ≥ 1.
    delta
        δ: the confidence set holds at every round with probability at least 1 − 2δ; those of "tight" and "variance"
        with 1 − δ.
    width
        "exact" sums ‖A_s‖ in V_t⁻¹ over the window, O(m·d) a round; "buffered" freezes each norm when its action is
        played, O(1) a round and never smaller; "tight" bounds the sum that open rounds can still add to each action,
        O(K·m·d) (see `latecomer.policies.otf_lin_ucb_tight`); "variance" weights closed rounds by their variance,
        O(K·d²), and has the narrowest bound where the window keeps few conversions
        (see `latecomer.policies.otf_lin_ucb_variance`).
    exploration
        c, a multiplier of the bonus; 1 is the theorem.
    **common
        `seed`, `clock`, `floor`, `draws`, `control` and `guard`, as in `LinearPolicy`.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.OTFLinUCB(dim=2, window=100)
    >>> decision = policy.decide([[1.0, 0.0], [0.0, 1.0]])
    >>> decision.index, policy.convert(decision).name
    (0, 'ACCEPTED')
    """

    algorithm = Algorithm("OTFLinUCB", choose=choose, width=alpha)

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 1.0,
        delta: float = 0.1,
        width: Literal["exact", "buffered", "tight", "variance"] = "exact",
        exploration: float = 1.0,
        **common: Unpack[CommonParameters],
    ) -> None:
        delta, exploration = check_probability("delta", delta), check_nonnegative("exploration", exploration)
        is_variance = check_choice("width", width, WIDTHS) == "variance"
        super().__init__(
            dim,
            window,
            ridge=ridge,
            algorithm={"tight": TIGHT, "variance": VARIANCE}.get(width),
            refresh_norms=width == "exact",
            numbers={"delta": delta, "exploration": exploration},
            state_numbers=set_numbers(check_positive("ridge", ridge), delta, exploration) if is_variance else None,
            options={"width": width},
            **common,
        )
