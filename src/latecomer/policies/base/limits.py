"""Limits of single actions: a floor and a ceiling of the probability by which each is chosen.

A limited algorithm is a randomised one (`choice_probabilities`) whose own probabilities e are first replaced by the
nearest ones for which p_k = (1 − ε)·e_k + ε/K is between the floor and the ceiling of action k: e_k = clip(e_k + t),
with t such that Σ e_k = 1. What the limits take from one action, or give to it, the others share in equal parts. The
choice is drawn from them, so that its propensity is exact. Where the actions of a set cannot all stay below their
ceilings, what is left over goes to all in equal parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel
from latecomer.core.state import Array, ExtraFields, Field, FieldKind, Ring, State
from latecomer.errors import InputError
from latecomer.policies.base.choice_probabilities import (
    probabilities_of_best,
    probabilities_of_samples,
    probabilities_of_scores,
)
from latecomer.policies.base.guard import probabilities_of_guarded_samples
from latecomer.validation import check_integer, check_share, short_repr

MOST = 16
"""Actions that can be limited."""
_HALVINGS = 60

Limits = Mapping[str, Mapping[str, float]]
"""{"offer-7": {"floor": 0.05, "ceiling": 0.3}}: by the id of an action."""
_EXAMPLE = 'such as {"offer-7": {"floor": 0.05, "ceiling": 0.3}}'


@dataclass(frozen=True)
class Limit:
    """The least and the largest probability of one action, by its id."""

    action: str
    floor: float = 0.0
    ceiling: float = 1.0


def check_limits(limits: Limits | None, *, floor: float) -> tuple[Limit, ...]:
    """Return the limits; `InputError` where one breaks a rule, or floors together are above 1."""
    if limits is None:
        return ()
    if not isinstance(limits, Mapping) or len(limits) > MOST:
        raise InputError(
            f"limits must be of at most {MOST} actions, {_EXAMPLE}; got {short_repr(limits)}", field="limits"
        )
    found = tuple(_check_limit(action, limit) for action, limit in limits.items())
    total = sum(limit.floor for limit in found) + floor
    if total > 1.0:
        raise InputError(
            f"limits: the floors of all actions and the policy's own must be at most 1 together; got {total:g}: lower "
            "them",
            field="limits",
        )
    return found


def _check_limit(action: object, limit: object) -> Limit:
    if not isinstance(action, str) or not action:
        raise InputError(f"limits must be by the ids of actions, {_EXAMPLE}; got {short_repr(action)}", field="limits")
    if not isinstance(limit, Mapping) or not limit or set(limit) - {"floor", "ceiling"}:
        raise InputError(
            f"limits: {short_repr(action)} must have a floor, a ceiling or both, {_EXAMPLE}; got {short_repr(limit)}",
            field="limits",
        )
    try:
        low = check_share(f"limits: {short_repr(action)}: floor", limit.get("floor", 0.0))
        high = check_share(f"limits: {short_repr(action)}: ceiling", limit.get("ceiling", 1.0))
    except InputError as error:
        raise InputError(str(error), field="limits") from None
    if low > high:
        raise InputError(
            f"limits: {short_repr(action)}: floor must be at most the ceiling; got {low:g} and {high:g}", field="limits"
        )
    return Limit(action, low, high)


def list_limits(limits: tuple[Limit, ...]) -> dict[str, dict[str, float]]:
    """Return limits as a policy takes them."""
    return {limit.action: {"floor": limit.floor, "ceiling": limit.ceiling} for limit in limits}


def place_limits(
    record: npt.NDArray[Any], limits: tuple[Limit, ...], places: Mapping[str, int] | None, count: int
) -> None:
    """Tell a state where the limited actions are in the next set; `places` has those that it has, by their ids."""
    unknown = sorted(set(places or ()) - {limit.action for limit in limits}, key=str)
    if unknown:
        raise InputError(f"places must be of limited actions; got {short_repr(unknown[0])}", field="places")
    record["limit_places"] = -1
    for slot, limit in enumerate(limits):
        place = (places or {}).get(limit.action)
        if place is None:
            continue
        if check_integer("places", place, least=0) >= count:
            raise InputError(f"places must be indices of {count} actions; got {place!r}", field="places")
        record["limit_places"][0, slot] = place
        record["limit_low"][0, slot], record["limit_high"][0, slot] = limit.floor, limit.ceiling


def limit_fields() -> ExtraFields:
    """Return the fields of a limited state: where the limited actions are in the next set, and their limits."""
    return {
        "limit_places": Field(np.full(MOST, -1), FieldKind.SCRATCH),
        "limit_low": Field(np.zeros(MOST), FieldKind.SCRATCH),
        "limit_high": Field(np.ones(MOST), FieldKind.SCRATCH),
    }


@kernel
def _fill_bounds(state: State, low: Array, high: Array) -> bool:
    """Fill in the bounds of e_k that the limits and the ceiling give; return whether there are any."""
    count, scale = low.shape[0], 1.0 - state.floor
    rest, found = state.floor / count, bool(state.ceiling < 1.0)
    most = 1.0
    if found:
        most = min(1.0, max(1.0 / count, (state.ceiling - rest) / scale))
    for k in range(count):
        low[k], high[k] = 0.0, most
    for slot in range(state.limit_places.shape[0]):
        k = int(state.limit_places[slot])
        if 0 <= k < count:
            found = True
            low[k] = max(0.0, (state.limit_low[slot] - rest) / scale)
            high[k] = max(low[k], min(most, (state.limit_high[slot] - rest) / scale))
    total = 0.0
    for k in range(count):
        total += high[k]
    if total < 1.0:
        for k in range(count):
            high[k] += (1.0 - total) / count
    return found


@kernel
def limit_probabilities(state: State, own: Array) -> None:
    """Replace e by the nearest probabilities within the limits: e_k = clip(e_k + t, low_k, high_k), with Σ e_k = 1."""
    count = own.shape[0]
    low, high = np.empty(count), np.empty(count)
    if state.floor >= 1.0 or not _fill_bounds(state, low, high):
        return
    below, above = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle, total = 0.5 * (below + above), 0.0
        for k in range(count):
            total += min(max(own[k] + middle, low[k]), high[k])
        if total < 1.0:
            below = middle
        else:
            above = middle
    for k in range(count):
        own[k] = min(max(own[k] + above, low[k]), high[k])


def limited_best(state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array) -> None:
    """1 for the action that an optimist would choose, within the limits."""
    probabilities_of_best(state, ring, actions, draws, scores, out)
    limit_probabilities(state, out)


def limited_scores(state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array) -> None:
    """The scores themselves, within the limits."""
    probabilities_of_scores(state, ring, actions, draws, scores, out)
    limit_probabilities(state, out)


def limited_samples(state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array) -> None:
    """The shares of samples that each action wins, within the limits."""
    probabilities_of_samples(state, ring, actions, draws, scores, out)
    limit_probabilities(state, out)


def limited_guarded(state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array) -> None:
    """The shares of samples that each action wins under a guard, within the limits, which come before the guard."""
    probabilities_of_guarded_samples(state, ring, actions, draws, scores, out)
    limit_probabilities(state, out)
