"""Actions that a request leaves out, or pins: the decision is made among the others, or for the pinned one alone.

The policy, the log's offer and its propensity know the remaining actions alone, so that a replay and an evaluation are
of the decision that was made. The answer's index is the place in the request.
"""

from collections.abc import Sequence

import numpy as np

from latecomer.errors import InputError
from latecomer.validation import short_repr, suggest

Choice = int | str
"""An action by its index in the request, or by its id."""


def select_actions(
    count: int, ids: Sequence[str] | None, exclude: Sequence[Choice] | None, pin: Choice | None
) -> list[int] | None:
    """Return the places of the actions to choose from; None for all. `InputError` names `exclude` or `pin`."""
    excluded = set() if exclude is None else _find_excluded(exclude, count, ids)
    if pin is not None:
        place = _find("pin", pin, count, ids)
        if place in excluded:
            raise InputError(f"pin must not be an action that exclude has; got {short_repr(pin)}", field="pin")
        return [place] if count > 1 else None
    if len(excluded) == count:
        raise InputError(f"exclude must leave an action to choose; it has all {count}", field="exclude")
    return [place for place in range(count) if place not in excluded] if excluded else None


def _find_excluded(exclude: object, count: int, ids: Sequence[str] | None) -> set[int]:
    if not isinstance(exclude, list | tuple | set | frozenset):
        raise InputError(
            f"exclude must be a list of actions, by index or id; got {short_repr(exclude)}", field="exclude"
        )
    return {_find("exclude", choice, count, ids) for choice in exclude}


def _find(field: str, choice: object, count: int, ids: Sequence[str] | None) -> int:
    """Return the place of an action."""
    if isinstance(choice, str):
        if ids is None:
            raise InputError(
                f"{field} must have indices where actions have no ids; got {short_repr(choice)}", field=field
            )
        if choice not in ids:
            raise InputError(
                f"{field} must name actions of the request; got {short_repr(choice)}{suggest(choice, list(ids))}",
                field=field,
            )
        return ids.index(choice)
    if isinstance(choice, bool) or not isinstance(choice, int | np.integer) or not 0 <= choice < count:
        raise InputError(
            f"{field} must have the index of one of {count} actions, from 0, or its id; got {short_repr(choice)}",
            field=field,
        )
    return int(choice)
