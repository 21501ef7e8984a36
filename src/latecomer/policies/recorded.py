"""Events that were decided before, fed to a policy in bulk: what a replay is made of.

Stamps are int64 microseconds since 1970, or `UNSTAMPED` where the window is in rounds. The caller answers for their
order: a log's stamps never run backwards.
"""

import numpy as np

from latecomer.core.state import UNSTAMPED, Array, Integers
from latecomer.errors import InputError
from latecomer.policies.action_sets import explain_inadmissible
from latecomer.policies.learner import Learner
from latecomer.policies.randomness import Draw
from latecomer.policies.records import Verdict

VERDICTS = (Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.LATE, Verdict.UNKNOWN)
"""By the kernels' numbers."""

_AT_ONCE = 16_384


def is_in_rounds(learner: Learner) -> bool:
    """Whether the window is a number of rounds."""
    return learner._in_rounds


def span(learner: Learner) -> int:
    """The window in its own unit."""
    return learner._span


def latest(learner: Learner) -> int:
    """The stamp of the latest decision."""
    return learner._now


def record(learner: Learner, actions: Array, stamps: Integers) -> None:
    """Record decisions as if `decide` had just chosen these actions, and spend the random numbers that it would have.

    After it the policy is, bit for bit, the one that made the decisions.

    Examples
    --------
    >>> import numpy as np, latecomer as lc
    >>> live, replayed = (lc.OTFLinTS(dim=2, window=100, seed=0) for _ in range(2))
    >>> chosen = np.array([live.decide(np.eye(2)).action for _ in range(9)])
    >>> record(replayed, chosen, np.full(9, UNSTAMPED))
    >>> replayed.decide(np.eye(2)).score == live.decide(np.eye(2)).score
    True
    """
    actions = np.ascontiguousarray(actions)
    if actions.ndim != 2 or actions.shape[1] != learner.dim or stamps.shape != (len(actions),):
        raise InputError(
            f"actions must be an (N, {learner.dim}) array with one stamp each; got {actions.shape} and {stamps.shape}"
        )
    if not learner._memory.admits(actions):
        raise explain_inadmissible(actions)
    if learner._randomness.draw is not Draw.NOTHING:
        for low in range(0, len(actions), _AT_ONCE):
            learner._randomness.draws(min(_AT_ONCE, len(actions) - low), learner.dim)
    learner._memory.record_many(actions, np.full(len(stamps), UNSTAMPED) if learner._in_rounds else stamps)


def credit(learner: Learner, rounds: Integers, values: Array, stamps: Integers) -> tuple[Integers, Integers]:
    """Conversions, one after the other: verdicts by their numbers, and the delays of the accepted ones.

    A stamp before the latest decision counts as that one's.
    """
    stamps = np.full(len(rounds), UNSTAMPED) if learner._in_rounds else stamps
    return learner._memory.credit_many(rounds, values, stamps)


def revoke(learner: Learner, round: int, stamp: int) -> int:
    """A conversion taken back; the verdict by its number."""
    return learner._memory.revoke(round, UNSTAMPED if learner._in_rounds else stamp)


def drift(learner: Learner) -> tuple[float, int]:
    """How far V·V⁻¹ was from I at the last check, and how often V⁻¹ was computed afresh."""
    return float(learner._memory.number("residual")), int(learner._memory.number("refactorisations"))
