"""Arguments made certain: every check says the name, the rule, the value, and what to do."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.errors import InputError


_REAL = (bool, int, float, np.integer, np.floating, np.bool)
_WHOLE = (int, np.integer)
_DOUBLE = np.dtype(np.float64)


def number(name: str, value: object, rule: str) -> float:
    """A real number that is not NaN; a string is not a number."""
    if isinstance(value, _REAL):
        result = float(value)
        if not math.isnan(result):
            return result
    raise InputError(f"{name} must be {rule}; got {value!r}")


def positive(name: str, value: object) -> float:
    """Above zero, finite, and with an inverse."""
    result = number(name, value, "a number above 0")
    if not (0.0 < result < math.inf and math.isfinite(1.0 / result)):
        raise InputError(f"{name} must be above 0 and finite; got {value!r}")
    return result


def nonnegative(name: str, value: object) -> float:
    """Zero or above, finite."""
    result = number(name, value, "a number of at least 0")
    if not 0.0 <= result < math.inf:
        raise InputError(f"{name} must be at least 0 and finite; got {value!r}")
    return result


def probability(name: str, value: object) -> float:
    """Strictly between 0 and 1."""
    result = number(name, value, "a probability strictly between 0 and 1")
    if not 0.0 < result < 1.0:
        raise InputError(f"{name} must be a probability strictly between 0 and 1; got {value!r}, 0.1 is usual")
    return result


def share(name: str, value: object) -> float:
    """In [0, 1], ends included."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value  # the fast path
    result = number(name, value, "a number in [0, 1]")
    if not 0.0 <= result <= 1.0:
        raise InputError(f"{name} must be in [0, 1]; got {value!r}, divide it by its largest possible value first")
    return result


def whole(name: str, value: object, *, least: int) -> int:
    """An integer of at least `least` that fits in 62 bits."""
    if isinstance(value, bool) or not isinstance(value, _WHOLE):
        raise InputError(f"{name} must be a whole number; got {value!r}")
    if not least <= value < 2**62:
        raise InputError(f"{name} must be at least {least} and below 2^62; got {value!r}")
    return int(value)


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")
    return value


def action_set(actions: npt.ArrayLike, dim: int) -> Array:
    """A (K, d) array of doubles, C-ordered and ours to read; norms are checked by the kernel, on its way."""
    if type(actions) is np.ndarray and actions.dtype is _DOUBLE and actions.flags.carray:
        shape = actions.shape
        if len(shape) == 2 and shape[1] == dim and shape[0]:
            return actions  # the fast path: nothing to do
    array = _numeric("actions", actions, f"(K, {dim})")
    if array.ndim != 2:
        raise InputError(
            f"actions must be a (K, {dim}) array, one row per action; got {array.ndim} dimension(s), shape {array.shape}"
        )
    if array.shape[0] == 0:
        raise InputError(f"actions must hold at least one action; got shape {array.shape}")
    if array.shape[1] != dim:
        raise InputError(f"actions must have {dim} columns, one per dimension; got shape {array.shape}")
    return array


def action_sets(sets: npt.ArrayLike | Sequence[npt.ArrayLike], dim: int) -> Array | list[Array]:
    """A batch: one (N, K, d) array, or a list where the sets differ in size."""
    if not isinstance(sets, np.ndarray | list | tuple):
        raise InputError(f"action_sets must be an (N, K, {dim}) array or a list of (K, {dim}) arrays; got {sets!r}")
    if isinstance(sets, np.ndarray) and sets.ndim != 3:
        raise InputError(f"action_sets must be an (N, K, {dim}) array; got shape {sets.shape}")
    checked = []
    for position, actions in enumerate(sets):
        try:
            checked.append(action_set(actions, dim))
        except InputError as error:
            raise InputError(f"in set {position} of the batch: {error}") from None
    if len({array.shape for array in checked}) == 1:
        return np.stack(checked)
    return checked


def explain_inadmissible(actions: Array) -> InputError:
    """Which action is not finite, or too long."""
    for k, row in enumerate(actions):
        if not np.isfinite(row).all():
            column = int(np.flatnonzero(~np.isfinite(row))[0])
            return InputError(f"actions must be finite; action {k} has {row[column]} in column {column}")
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(row))
        if norm > 1.0:
            worst, at_fault = norm, k
            break
    return InputError(
        f"actions must have norm at most 1; action {at_fault} has norm {worst:.6g}: "
        "divide every action by the largest norm you will ever meet"
    )


def _numeric(name: str, value: object, shape: str) -> Array:
    """Numbers as doubles. NumPy would parse strings and box ragged lists: neither is what was meant."""
    try:
        array: npt.NDArray[Any] = np.asarray(value)
    except ValueError:
        raise InputError(f"{name} must be a {shape} array; got rows of different lengths") from None
    except (TypeError, OverflowError) as error:
        raise InputError(f"{name} must be a {shape} array of numbers; NumPy says: {error}") from None
    if array.dtype.kind not in "fiub":
        kind = "text" if array.dtype.kind in "US" else f"dtype {array.dtype}"
        raise InputError(f"{name} must be a {shape} array of numbers; got {kind}")
    with np.errstate(over="ignore"):
        return np.require(array, np.float64, ["C", "A", "W"])
