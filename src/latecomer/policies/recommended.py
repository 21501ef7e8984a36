"""The policy to use, with the constants that the arena chose (docs/arena.md). A heuristic that needs no tuning."""

from latecomer.policies.base.clock import Clock, Span
from latecomer.policies.base.rng import Seed
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


def recommended(dim: int, window: Span, *, seed: Seed = None, clock: Clock | None = None) -> MaturedLinTS:
    """Make a `MaturedLinTS` with the constants that did best over all worlds of the arena together.

    Parameters
    ----------
    dim
        d, the number of features of an action.
    window
        m: how long a decision may wait for its conversion; rounds (an int) or a time ("7d", or a `timedelta`).
    seed
        An int, or a NumPy generator; None takes fresh entropy.
    clock
        Where the window is a time: the function that tells the time when `at` is not given.

    Examples
    --------
    >>> import latecomer as lc
    >>> policy = lc.recommended(dim=2, window=100, seed=0)
    >>> policy.convert(policy.decide([[1.0, 0.0], [0.0, 1.0]])).name
    'ACCEPTED'
    """
    return MaturedLinTS(dim, window, **PARAMETERS, seed=seed, clock=clock)
