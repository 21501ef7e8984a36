"""The bodies of Azure Personalizer's API, v1.0, as Microsoft's clients write and read them."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from latecomer.service.http.errors import HTTPError, make_problem

_CODES = {401: "Unauthorized", 403: "Forbidden", 404: "ResourceNotFound"}
_FIELDS = {
    "context": "contextFeatures",
    "exclude": "excludedActions",
    "ids": "actions",
    "request_id": "eventId",
    "subject": "eventId",
}
"""Fields of our own requests, as Personalizer's call them."""

Text = Annotated[str, Meta(min_length=1, max_length=256)]


class RankableAction(Struct, frozen=True):
    """An action, and its features: a list of objects, which may be nested."""

    id: Text
    features: list[dict[str, Any]]


class RankRequest(Struct, frozen=True, rename="camel"):
    """The actions to rank, those to leave out, and the features of the moment."""

    actions: list[RankableAction]
    context_features: list[dict[str, Any]] | None = None
    excluded_actions: list[str] | None = None
    event_id: Text | None = None
    defer_activation: bool | None = False


class RankedAction(Struct, frozen=True):
    """An action of a ranking, and its probability."""

    id: str
    probability: float


class RankResponse(Struct, frozen=True, rename="camel"):
    """The ranking: the chosen action and the others by probability; those left out are in their own places."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct, frozen=True):
    """A reward."""

    value: float


class PersonalizerError(Struct, frozen=True):
    """An error in Personalizer's shape; `target` is the field."""

    code: str
    message: str
    target: str | UnsetType = UNSET


class PersonalizerErrorBody(Struct, frozen=True):
    """The body of an answer that is not a success."""

    error: PersonalizerError


def encode_personalizer_error(error: HTTPError) -> bytes:
    """Return the body of an error."""
    code = _CODES.get(error.status, "BadRequest" if error.status < 500 else "InternalServerError")
    problem = make_problem(error)
    target = UNSET if problem.field is UNSET else _FIELDS.get(problem.field, problem.field)
    return msgspec.json.encode(PersonalizerErrorBody(PersonalizerError(code, problem.message, target)))


def flatten_features(parts: list[dict[str, Any]], prefix: str = "") -> dict[str, Any]:
    """Join the names of nested features: [{"device": {"kind": "phone"}}] becomes {"device.kind": "phone"}.

    Numbers in a list become features by their place; nothing is made of an empty list or object.

    >>> flatten_features([{"device": {"kind": "phone"}}, {"tags": ["new"], "vector": [0.5, 1]}])
    {'device.kind': 'phone', 'tags': ['new'], 'vector.0': 0.5, 'vector.1': 1}
    """
    found: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            found |= _flatten(f"{prefix}{name}", value)
    return found


def _flatten(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return flatten_features([value], f"{name}.")
    if not isinstance(value, list) or all(isinstance(each, str) for each in value):
        return {} if value == [] else {name: value}
    return {key: one for place, each in enumerate(value) for key, one in _flatten(f"{name}.{place}", each).items()}
