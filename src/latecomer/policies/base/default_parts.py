"""The parts of an algorithm that those left out stand for: most of them do nothing."""

import math

from latecomer.core.action_summary import Shorts
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.core.width import pending_width_at


def sum_of_norms(state: State, ring: Ring, now: int) -> float:
    """Return W_t, the sum of the norms of open rounds."""
    return pending_width_at(state, ring, now)


def squared_norm(state: State, c: float) -> float:
    """Return c."""
    return c


def unchanged_by_time(state: State, ring: Ring, now: int) -> None:
    """Do nothing: time alone changes no statistics."""


def unchanged_by_round(state: State, ring: Ring, draws: Array | None) -> None:
    """Do nothing: a decision makes no other changes."""


def keep_no_set(state: State, ring: Ring, action: Array) -> None:
    """Do nothing: there is no confidence set."""


def nothing_to_correct(state: State, ring: Ring, slot: int, change: float, delay: int) -> None:
    """Do nothing: B is all that was learnt."""


def no_set_to_correct(state: State, ring: Ring, slot: int, before: float, after: float) -> None:
    """Do nothing: there is no confidence set."""


def ignore_actions(state: State, actions: Array | Shorts) -> None:
    """Do nothing: the algorithm does not look at action sets."""


def unknown_propensity(state: State) -> float:
    """Return NaN: the probability of a choice is not known."""
    return math.nan


def no_bonus(state: State) -> float:
    """Return 0: scores are linear in the action."""
    return 0.0


def no_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    """Return no fields: the state has those of every state alone."""
    return {}
