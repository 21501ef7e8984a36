"""WaitingLinUCB: learn from a round when its window has closed, not before. A theorem; production systems do it.

V and B sum over closed rounds alone, for which the answer is known: LinUCB with the radius
r_t = √λ + ½√(2 ln(1/δ) + ln det(V_t)/λ^d), valid with probability 1 − δ. (Counting conversions as they arrive and
silence only at the end of the window would be biased.) The paper (Vernade et al., ICML 2020) learns at once instead.
"""

from latecomer.core.choice import choose_by_upper_bound
from latecomer.core.closed_rounds import learn_from_closed_rounds
from latecomer.core.state import Array, Ring, State
from latecomer.core.width import bernoulli_radius
from latecomer.policies.base.algorithm import Algorithm, width, zero_pending_width
from latecomer.policies.base.families import UCBPolicy


def advance_time(state: State, ring: Ring, now: int) -> None:
    """Add the rounds that close at `now` to V and B."""
    learn_from_closed_rounds(state, ring, now)


def radius(state: State, pending_width: float) -> float:
    """Return r_t, the radius for values in [0, 1]."""
    return bernoulli_radius(state)


def choose(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """⟨a, θ̂⟩ + c·r_t·‖a‖_{V⁻¹}."""
    return choose_by_upper_bound(state, actions, state.exploration * width(state, 0.0), scores)


class WaitingLinUCB(UCBPolicy):
    """LinUCB on closed rounds alone, which make up `V` and `B`; parameters as in `OTFLinUCB`.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.WaitingLinUCB(dim=2, window=100)
    >>> policy.convert(policy.decide([[1.0, 0.0], [0.0, 1.0]])).name, policy.B.tolist()
    ('ACCEPTED', [0.0, 0.0])
    """

    algorithm = Algorithm(
        "WaitingLinUCB",
        choose=choose,
        width=radius,
        pending_width=zero_pending_width,
        advance_time=advance_time,
        learn_on_close=True,
    )
