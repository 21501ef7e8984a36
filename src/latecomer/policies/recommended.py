"""The policy to use, with the constants that the arena chose (docs/explanation/arena.md). A heuristic; no tuning."""

from typing import Unpack

from latecomer.policies.base.clock import Span
from latecomer.policies.base.parameters import CommonParameters, expand_common
from latecomer.policies.matured_lin_ts import MaturedLinTS

POLICY = "MaturedLinTS"
PARAMETERS = {
    "ridge": 1.0,
    "exploration": 0.55,
    "optimism": 2.0,
    "prior": 1.0,
    "shrinkage": 64.0,
    "context_discount": 0.6,
}

PROPENSITIES = {"floor": 0.02, "draws": 64}
"""The parameters that a service adds, so that its decisions have propensities."""


def recommended(dim: int, window: Span, **common: Unpack[CommonParameters]) -> MaturedLinTS:
    """Make a `MaturedLinTS` with the constants that did best over all worlds of the arena together.

    Parameters
    ----------
    dim
        d, the number of features of an action.
    window
        m: how long a decision may wait for its conversion; rounds (an int) or a time ("7d", or a `timedelta`).
    **common
        `seed`, `clock`, `floor`, `draws`, `control` and `guard`, as in `LinearPolicy`.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.recommended(dim=2, window=100, seed=0)
    >>> policy.convert(policy.decide([[1.0, 0.0], [0.0, 1.0]])).name
    'ACCEPTED'
    """
    return MaturedLinTS(dim, window, **PARAMETERS, **common)


recommended.__signature__ = expand_common(recommended)  # type: ignore[attr-defined]
