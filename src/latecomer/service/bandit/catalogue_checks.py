"""Checks of what a caller puts into a catalogue, and of what a decision takes from it, before anything changes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from latecomer.encoding.values import to_plain_features
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import check_actions, explain_inadmissible
from latecomer.policies.base.kernels import NORM_LIMIT
from latecomer.service.bandit.catalogue import Actions
from latecomer.service.features import encode_features
from latecomer.service.messages import MAX_ID_LENGTH, BanditInfo
from latecomer.validation import short_repr, to_plain_text

MAX_SIZE = 1_000_000
"""Actions of one catalogue."""


def check_ids(ids: Iterable[str], where: str) -> list[str]:
    """Return ids; `InputError` unless all are texts of the right length, in Unicode, and different."""
    seen: dict[str, None] = {}
    for place, id_ in enumerate(ids):
        if not isinstance(id_, str) or not 0 < len(id_) <= MAX_ID_LENGTH or not _is_unicode(id_):
            raise InputError(
                f"{where}: an id must be a text of 1 to {MAX_ID_LENGTH} characters; got {short_repr(id_)}",
                field=f"{where}[{place}]",
            )
        if id_ in seen:
            raise InputError(
                f"{where}: an id must be there once; got {short_repr(id_)} again", field=f"{where}[{place}]"
            )
        seen[to_plain_text(id_)] = None
    return list(seen)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_put(info: BanditInfo, actions: Mapping[str, Any], *, size: int) -> Actions:
    """Return actions that fit the bandit, all vectors or all features; `InputError` where they do not.

    Parameters
    ----------
    info
        The bandit's description, for its dimension and its encoder.
    actions
        {id: vector} or {id: {name: value}}.
    size
        The number of actions that the catalogue has already.
    """
    ids = check_ids(actions, "actions")
    if size + len(ids) > MAX_SIZE:
        raise InputError(
            f"actions must be at most {MAX_SIZE:,} in a catalogue; got {size + len(ids):,}", field="actions"
        )
    described = [isinstance(value, Mapping) for value in actions.values()]
    if not any(described):
        return Actions(ids, _check_vectors(info, list(actions.values()))) if ids else Actions()
    if not all(described):
        place = described.index(False)
        raise InputError(
            f"actions must all be vectors, or all have features; action {short_repr(ids[place])} is a vector",
            field=f"actions[{place}]",
        )
    features = []
    for place, value in enumerate(actions.values()):
        try:
            features.append(to_plain_features(value, f"action {place}"))
        except InputError as error:
            error.field = f"actions[{place}]"
            raise
    encode_features(info, {}, features)  # raises
    return Actions(ids, features=features)


def _check_vectors(info: BanditInfo, vectors: Sequence[Any]) -> bytes:
    try:
        rows = check_actions(np.asarray(vectors, np.float64), info.dim)
    except (InputError, ValueError, TypeError):
        rows = np.concatenate([_check_vector(info, vector, place) for place, vector in enumerate(vectors)])
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.square(rows).sum(axis=1))
    wrong = np.flatnonzero(~(norms <= NORM_LIMIT))
    if len(wrong):
        error = explain_inadmissible(rows[wrong[:1]])
        raise InputError(str(error).replace("action 0", f"action {wrong[0]}"), field=f"actions[{wrong[0]}]")
    return rows.astype("<f4").tobytes()


def _check_vector(info: BanditInfo, vector: Any, place: int) -> Any:
    try:
        return check_actions([vector], info.dim)
    except InputError as error:
        raise InputError(f"action {place}: {error}", field=f"actions[{place}]") from None
