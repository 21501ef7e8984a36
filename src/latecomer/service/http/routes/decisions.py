"""POST /v1/bandits/{name}/decisions: vectors, raw features, or an array in NumPy's format."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from latecomer.service.bandit.idempotency import MAX_ID_LENGTH
from latecomer.service.features import digest_features, hash_features
from latecomer.service.http.bodies import NPY
from latecomer.service.http.context import LARGE, AppContext, decoded, encode
from latecomer.service.http.errors import invalid
from latecomer.service.http.fast_json import FastJson
from latecomer.service.http.npy import parse_npy
from latecomer.service.http.query import query_param
from latecomer.service.http.router import Respond
from latecomer.service.http.settings import Settings

if TYPE_CHECKING:
    from latecomer.service.messages import BanditInfo

_FEW_FEATURES = 2048
"""Bytes of a body with features that are hashed in no time."""

Label = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
Features = dict[str, float | bool | str | list[str] | None]


class DescribedAction(Struct, frozen=True, forbid_unknown_fields=True):
    """An action by its features, names and values, to be hashed into the bandit's dimension."""

    id: Label
    features: Features


class DecisionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What to choose from: rows of numbers, or actions by their features with those of the context."""

    actions: list[list[float] | DescribedAction]
    ids: list[Label] | None = None
    request_id: Label | None = None
    context: Features | None = None


class ParsedDecision(Struct, frozen=True):
    """A request, made uniform: rows, ids where there are any, and the request's id."""

    rows: npt.NDArray[np.float64]
    ids: list[str] | None
    request_id: str | None
    body: bytes | None = None
    """What stands for the body, where the rows do not: features that are scaled alike become the same rows."""


_decoder = msgspec.json.Decoder(DecisionRequest)


def responders(reception: AppContext) -> dict[str, Respond]:
    """The one, over this reception's store."""
    store, door, intake = reception.store, reception.door, reception.intake
    limits, most = reception.settings, reception.settings.max_actions
    reader = FastJson(most=most, longest=MAX_ID_LENGTH)

    async def decide(scope: Any, receive: Any, name: str) -> tuple[int, bytes]:
        door.admit(scope, "decide", name)
        info = store.info(name)
        body, kind = await intake.read(scope, receive)
        outside = query_param(scope, "request_id")
        if kind == NPY:
            choice = _from_array(body, outside)
        elif outside is not None:
            raise invalid("request_id must stand in the body, where that is JSON", "request_id")
        elif _is_heavy(body):
            choice = await asyncio.to_thread(_from_json, body, info, limits)
        else:
            plain = reader.read(body, info.dim)
            choice = _from_json(body, info, limits) if plain is None else ParsedDecision(*plain)
        _check(choice, info, most)
        result, ticket = store.decide(name, choice.rows, choice.ids, request_id=choice.request_id, body=choice.body)
        await reception.durable(ticket)
        return 201, encode(result)

    return {"decisions": decide}


def _is_heavy(body: bytes) -> bool:
    """Whether others would wait for it: a large body, or features, each of which is joined with each of the context."""
    return len(body) > LARGE or (len(body) > _FEW_FEATURES and body.find(b"{", body.find(b"{") + 1) >= 0)


def _from_json(body: bytes, info: "BanditInfo", limits: Settings) -> ParsedDecision:
    request: DecisionRequest = decoded(body, _decoder)
    most = limits.max_actions
    if not 1 <= len(request.actions) <= most:
        raise invalid(f"actions must be 1 to {most} (the setting max_actions); got {len(request.actions)}", "actions")
    if isinstance(request.actions[0], DescribedAction):
        return _from_features(request, info, limits.max_terms)
    if request.context is not None:
        raise invalid("context is for actions that have features", "context")
    return ParsedDecision(_array(request.actions, info.dim), request.ids, request.request_id)


def _array(rows: list[list[float] | DescribedAction], dim: int) -> npt.NDArray[np.float64]:
    for position, row in enumerate(rows):
        if not isinstance(row, list):
            raise invalid("actions must all be rows of numbers, or all have features", "actions")
        if len(row) != dim:
            raise invalid(
                f"actions must have {dim} columns, one per dimension; row {position} has {len(row)}", "actions"
            )
    return np.array(rows, np.float64)


def _from_features(request: DecisionRequest, info: "BanditInfo", most: int) -> ParsedDecision:
    if request.ids is not None:
        raise invalid("ids must be left out where actions have an id each", "ids")
    described = [action for action in request.actions if isinstance(action, DescribedAction)]
    if len(described) != len(request.actions):
        raise invalid("actions must all be rows of numbers, or all have features", "actions")
    around = 1 + _count(request.context or {})
    if sum(around * (1 + _count(action.features)) for action in described) > most:
        raise invalid(f"features must give at most {most} terms, products included (the setting max_terms)", "actions")
    context = request.context or {}
    rows = hash_features(context, [action.features for action in described], info.dim, scales=info.features)
    body = None
    if request.request_id is not None:
        body = digest_features(context, [(action.id, action.features) for action in described])
    return ParsedDecision(rows, [action.id for action in described], request.request_id, body)


def _count(features: Features) -> int:
    return sum(len(value) if isinstance(value, list) else 1 for value in features.values())


def _from_array(body: bytes, request_id: str | None) -> ParsedDecision:
    """An array has no room for a request id: the query has."""
    if request_id is not None and not 1 <= len(request_id) <= MAX_ID_LENGTH:
        raise invalid(f"request_id must be of 1 to {MAX_ID_LENGTH} characters", "request_id")
    return ParsedDecision(parse_npy(body), None, request_id)


def _check(choice: ParsedDecision, info: "BanditInfo", most: int) -> None:
    """What the store would not say in terms of this request."""
    count, columns = choice.rows.shape if choice.rows.ndim == 2 else (len(choice.rows), 0)
    if columns != info.dim:
        raise invalid(f"actions must have {info.dim} columns, one per dimension; got {columns}", "actions")
    if count > most:
        raise invalid(f"actions must be 1 to {most} (the setting max_actions); got {count}", "actions")
    if choice.ids is not None and len(choice.ids) != count:
        raise invalid(f"ids must be one for each of the {count} actions; got {len(choice.ids)}", "ids")
