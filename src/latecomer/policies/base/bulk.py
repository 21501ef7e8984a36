"""Events that were decided before, fed to a policy in bulk: what a replay is made of.

Stamps are int64 microseconds since 1970, or `UNSTAMPED` where the window is in rounds. The caller answers for their
order: a log's stamps never run backwards.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from latecomer.core.action_summary import Shorts, summarise_actions
from latecomer.core.jit import entry_point, kernel_holding_gil
from latecomer.core.state import UNSTAMPED, Array, Integers
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import DOUBLE, explain_inadmissible
from latecomer.policies.base.policy import LinearPolicy

_AT_ONCE = 16_384


def is_in_rounds(policy: LinearPolicy) -> bool:
    """Whether the window is a number of rounds."""
    return policy._in_rounds


def span(policy: LinearPolicy) -> int:
    """The window in its own unit."""
    return policy._span


def latest(policy: LinearPolicy) -> int:
    """The stamp of the latest decision."""
    return policy._now


def offer(policy: LinearPolicy, actions: Array) -> Shorts:
    """The summary of an offer, d + 2 short integers: what a replay must know of the actions that were not chosen."""
    summary = np.empty(policy.dim + 2, np.int16)
    _summariser()(_in_rows(actions), summary)
    return summary


def _in_rows(actions: Array) -> Array:
    """Doubles, aligned and row by row. NumPy's own way of asking takes longer than all the rest where they are."""
    flags = actions.flags
    if actions.dtype is DOUBLE and flags.c_contiguous and flags.aligned:
        return actions
    return np.require(actions, np.float64, ["C", "A"])


@cache
def _summariser() -> Callable[[Array, Shorts], None]:
    """Its machine code, for sets of any size: arrays do not carry theirs in their type."""
    return entry_point(kernel_holding_gil(summarise_actions.py_func), np.empty((1, 1)), np.empty(3, np.int16))  # type: ignore[attr-defined,no-any-return]


def record(policy: LinearPolicy, actions: Array, offers: Shorts, stamps: Integers) -> None:
    """Record decisions as if `decide` had just chosen these actions, and spend the random numbers that it would have.

    After it the policy is, bit for bit, the one that made the decisions. `offers` has each one's `offer`, a row each.

    Examples
    --------
    >>> import numpy as np, latecomer as lc
    >>> live, replayed = (lc.OTFLinTS(dim=2, window=100, seed=0) for _ in range(2))
    >>> chosen = np.array([live.decide(np.eye(2)).action for _ in range(9)])
    >>> record(replayed, chosen, np.tile(offer(live, np.eye(2)), (9, 1)), np.full(9, UNSTAMPED))
    >>> replayed.decide(np.eye(2)).score == live.decide(np.eye(2)).score
    True
    """
    actions = _in_rows(actions)
    if actions.ndim != 2 or actions.shape[1] != policy.dim or stamps.shape != (len(actions),):
        raise InputError(
            f"actions must be an (N, {policy.dim}) array with one stamp each; got {actions.shape} and {stamps.shape}"
        )
    if not len(actions):
        return
    if not policy._memory.admits(actions):
        raise explain_inadmissible(actions)
    if offers.shape != (len(actions), policy.dim + 2):
        raise InputError(f"offers must be an (N, {policy.dim + 2}) array, a row each; got {offers.shape}")
    stamps = np.full(len(stamps), UNSTAMPED) if policy._in_rounds else stamps
    offers = np.ascontiguousarray(offers, np.int16)
    for low in range(0, len(actions), _AT_ONCE):
        part = slice(low, low + _AT_ONCE)
        draws = policy._randomness.draws(len(actions[part]), policy.dim)
        policy._memory.record_many(actions[part], offers[part], stamps[part], draws)


def credit(policy: LinearPolicy, rounds: Integers, values: Array, stamps: Integers) -> tuple[Integers, Integers]:
    """Credit conversions, one after the other: verdicts by their numbers, and the delays of the accepted ones.

    A stamp before the latest decision counts as that one's; the delay of one before its own decision is −1, unknown.
    """
    stamps = np.full(len(rounds), UNSTAMPED) if policy._in_rounds else stamps
    return policy._memory.credit_many(rounds, values, stamps)


def revoke(policy: LinearPolicy, round: int, stamp: int) -> int:
    """A conversion taken back; the verdict by its number."""
    return policy._memory.revoke(round, UNSTAMPED if policy._in_rounds else stamp)


def drift(policy: LinearPolicy) -> tuple[float, int]:
    """How far V·V⁻¹ was from I at the last check, and how often V⁻¹ was computed afresh."""
    return float(policy._memory.number("residual")), int(policy._memory.number("refactorisations"))
