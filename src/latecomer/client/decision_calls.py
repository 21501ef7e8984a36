"""The calls for decisions: actions as rows of numbers, as an array, or by their features."""

import io
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np

from latecomer.client.protocol import Call, bandit_path, encode_json
from latecomer.encoding.values import FeatureRow, to_plain_actions, to_plain_features
from latecomer.errors import InputError
from latecomer.service.messages import DecisionAnswer, check_request_id
from latecomer.validation import short_repr

Actions = np.ndarray[Any, np.dtype[Any]] | Sequence[Sequence[float]]


def decide(name: str, actions: Actions, *, ids: Sequence[str] | None, request_id: str | None) -> Call[DecisionAnswer]:
    """Make the call for a decision, always with a request id; an array without ids is sent in binary."""
    request_id = _choose_request_id(request_id)
    path = f"{bandit_path(name)}/decisions"
    rows = _to_array(actions) if hasattr(actions, "__array__") else actions
    if isinstance(rows, np.ndarray) and ids is None:
        file = io.BytesIO()
        np.save(file, rows)
        path = f"{path}?{urlencode({'request_id': request_id})}"
        return Call(
            method="POST", path=path, gives=DecisionAnswer, content=file.getvalue(), content_type="application/x-npy"
        )
    body = {"actions": rows, "request_id": request_id} | ({} if ids is None else {"ids": list(ids)})
    return Call(method="POST", path=path, gives=DecisionAnswer, content=encode_json(body))


def decide_features(
    name: str, actions: Mapping[str, FeatureRow], *, context: FeatureRow | None, request_id: str | None
) -> Call[DecisionAnswer]:
    """Make the call for a decision between actions that are described by features."""
    described = [{"id": id_, "features": features} for id_, features in to_plain_actions(actions)]
    context_features = {} if context is None else to_plain_features(context, "context")
    body = {"context": context_features, "actions": described, "request_id": _choose_request_id(request_id)}
    return Call(method="POST", path=f"{bandit_path(name)}/decisions", gives=DecisionAnswer, content=encode_json(body))


def _choose_request_id(request_id: str | None) -> str:
    """Return the caller's request id, or a new one; 0 and "" are no ids, and must not become a new one each time."""
    return uuid.uuid4().hex if request_id is None else check_request_id(request_id)


def _to_array(actions: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return an array, or a DataFrame, as doubles in C order."""
    try:
        return np.ascontiguousarray(actions, "<f8")
    except (TypeError, ValueError):
        raise InputError(
            f"actions must be a (K, d) array of numbers; got {short_repr(actions)}", field="actions"
        ) from None
