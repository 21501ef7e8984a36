"""Checks of the actions of a decision, and of their ids, before the policy sees them."""

from collections.abc import Sequence

import numpy.typing as npt
from numpy import ndarray

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import DOUBLE, check_actions
from latecomer.service.messages import MAX_ID_LENGTH
from latecomer.validation import short_repr, to_plain_text


def check_action_array(actions: npt.ArrayLike | None, dim: int) -> Array:
    """Return a (K, d) array of doubles; one that has that form already is returned as it is."""
    if (
        type(actions) is ndarray
        and actions.dtype is DOUBLE
        and actions.ndim == 2
        and actions.flags.carray
        and actions.shape[1] == dim
        and actions.shape[0]
    ):
        return actions
    return check_actions(actions, dim)


def check_action_ids(ids: Sequence[str], count: int) -> Sequence[str]:
    """Return the ids; `InputError` unless they are short texts, a different one for each action."""
    if not isinstance(ids, list | tuple):
        raise InputError(
            f"ids must be a list of texts, one for each action; got {type(ids).__name__}: make it a list", field="ids"
        )
    if len(ids) != count:
        raise InputError(f"ids must name every action, {count}; got {len(ids)}", field="ids")
    for id_ in ids:
        if type(id_) is not str or len(id_) > MAX_ID_LENGTH:
            return check_action_ids([_check_id(each) for each in ids], count)
    try:
        "".join(ids).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"ids must be Unicode; got a lone surrogate ({error.reason})", field="ids") from None
    if len(set(ids)) < len(ids):
        twice = next(id_ for place, id_ in enumerate(ids) if id_ in ids[:place])
        raise InputError(
            f"ids must be different: by its id an action is found, left out and limited; got {short_repr(twice)} twice",
            field="ids",
        )
    return ids


def _check_id(id_: object) -> str:
    if not isinstance(id_, str) or len(id_) > MAX_ID_LENGTH:
        raise InputError(f"ids must be texts of at most {MAX_ID_LENGTH} characters; got {short_repr(id_)}", field="ids")
    return to_plain_text(id_)
