"""Checks of action sets, before anything changes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.errors import InputError

DOUBLE = np.dtype(np.float64)


def check_actions(actions: npt.ArrayLike | None, dim: int) -> Array:
    """Return a (K, d) array of doubles, aligned and in C order; kernels check the norms."""
    array = _numeric("actions", actions, f"(K, {dim})")
    if array.ndim != 2:
        raise InputError(
            f"actions must be a (K, {dim}) array, a row per action; got shape {array.shape}", field="actions"
        )
    if array.shape[0] == 0:
        raise InputError(f"actions must hold at least one action; got shape {array.shape}", field="actions")
    if array.shape[1] != dim:
        raise InputError(
            f"actions must have {dim} columns, one per dimension; got shape {array.shape}", field="actions"
        )
    return array


def check_action_sets(sets: npt.ArrayLike | Sequence[npt.ArrayLike], dim: int) -> Array | list[Array]:
    """Return a batch of action sets: one (N, K, d) array, or a list where the sets differ in size."""
    if not isinstance(sets, np.ndarray | list | tuple):
        raise InputError(
            f"action_sets must be an (N, K, {dim}) array or a list of (K, {dim}) arrays; got {sets!r}",
            field="action_sets",
        )
    if isinstance(sets, np.ndarray) and sets.ndim != 3:
        raise InputError(f"action_sets must be an (N, K, {dim}) array; got shape {sets.shape}", field="action_sets")
    checked = []
    for position, actions in enumerate(sets):
        try:
            checked.append(check_actions(actions, dim))
        except InputError as error:
            raise InputError(f"in set {position} of the batch: {error}", field="action_sets") from None
    if len({array.shape for array in checked}) == 1:
        return np.stack(checked)
    return checked


def explain_inadmissible(actions: Array) -> InputError:
    """Make the error that names the action that is not finite, or the longest one."""
    for k, row in enumerate(actions):
        if not np.isfinite(row).all():
            column = int(np.flatnonzero(~np.isfinite(row))[0])
            return InputError(
                f"actions must be finite; action {k} has {row[column]} in column {column}", field="actions"
            )
    norms = [math.hypot(*row) for row in actions.tolist()]  # hypot does not overflow where a square would
    longest = max(range(len(norms)), key=norms.__getitem__)
    return InputError(
        f"actions must have norm at most 1; action {longest} has norm {norms[longest]:.6g}: "
        "normalise, that is divide every action by the largest norm you will ever meet",
        field="actions",
    )


def _numeric(name: str, value: object, shape: str) -> Array:
    """Return numbers as doubles; refuse texts, which NumPy would parse, and ragged lists, which it would box."""
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(f"{name} must be a {shape} array without a mask; got a masked one: fill it first", field=name)
    try:
        array: npt.NDArray[Any] = np.asarray(value)
    except ValueError:
        raise InputError(f"{name} must be a {shape} array; got rows of different lengths", field=name) from None
    except (TypeError, OverflowError) as error:
        raise InputError(f"{name} must be a {shape} array of numbers; NumPy says: {error}", field=name) from None
    if array.dtype.kind not in "fiub":
        kind = "text" if array.dtype.kind in "US" else f"dtype {array.dtype}"
        if array.ndim == 0 and array.dtype.kind == "O":
            kind = "None" if value is None else f"a {type(value).__name__}"
        raise InputError(f"{name} must be a {shape} array of numbers; got {kind}", field=name)
    with np.errstate(over="ignore"):
        return np.require(array, np.float64, ["C", "A", "W"])
