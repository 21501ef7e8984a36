"""The policy to use, with the constants that the arena chose (docs/explanation/arena.md). A heuristic; no tuning."""

from collections.abc import Mapping
from typing import Any, Unpack

from latecomer.core.shrinkage import ENOUGH
from latecomer.policies.base.clock import Span
from latecomer.policies.base.parameters import CommonParameters, expand_common
from latecomer.policies.matured_lin_ts import MaturedLinTS
from latecomer.validation import check_integer

POLICY = "MaturedLinTS"
PROPENSITIES = {"floor": 0.02, "draws": 64}
"""The parameters that a service adds, so that its decisions have propensities."""


def constants(dim: int) -> dict[str, Any]:
    """Return the parameters of `MaturedLinTS` in d dimensions.

    Below `ENOUGH` dimensions contexts explore less by themselves, and a prior that is wrong in one direction is wrong
    in most: there the prior and the discount of optimism count by (d − 2)/3.
    """
    share = min(1.0, max(0.0, (check_integer("dim", dim, least=1) - 2.0) / (ENOUGH - 2.0)))
    return {
        "ridge": 1.0,
        "exploration": 0.55,
        "final_exploration": 0.35,
        "optimism": 2.0,
        "prior": share,
        "shrinkage": 64.0,
        "context_discount": 0.6,
        "optimism_discount": 0.6 * share,
        "false_alarms": 0.01,
    }


def complete(dim: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters where some are given; one that only refines another is not added to it."""
    refines = {"final_exploration": "exploration", "optimism_discount": "context_discount"}
    return {name: number for name, number in constants(dim).items() if refines.get(name) not in given} | dict(given)


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
    chosen = constants(dim)
    if fixed := sorted(chosen.keys() & common.keys()):
        raise TypeError(f"recommended() chooses {fixed[0]} itself: use MaturedLinTS, which takes it")
    return MaturedLinTS(dim, window, **chosen, **common)


recommended.__signature__ = expand_common(recommended)  # type: ignore[attr-defined]
