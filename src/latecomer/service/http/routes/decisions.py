"""POST /v1/bandits/{name}/decisions: vectors, features, an array in NumPy's format, a catalogue, or a list of those."""

import asyncio

import msgspec
import numpy as np
import numpy.typing as npt

from latecomer.service.action_index import find_index
from latecomer.service.bandit.catalogue_pick import check_pick
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.features import digest_features, encode_features
from latecomer.service.http import operations
from latecomer.service.http.bodies import DecisionRequest, DescribedAction, Features
from latecomer.service.http.body_reader import LARGE_BODY, NPY, decode_json
from latecomer.service.http.context import AppContext
from latecomer.service.http.decision_batches import BatchParser, is_batch, read_idempotency_key, to_outcomes, use_key
from latecomer.service.http.decision_queue import DecisionQueue
from latecomer.service.http.errors import invalid
from latecomer.service.http.fast_json import FastJson
from latecomer.service.http.npy import parse_npy
from latecomer.service.http.pending_decision import Parsed, ParsedDecision
from latecomer.service.http.query import query_param
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response, json_response
from latecomer.service.http.router import Route
from latecomer.service.http.settings import Settings
from latecomer.service.messages import MAX_ID_LENGTH, BanditInfo

_SMALL_FEATURES = 2048
"""Bytes of a body up to which features are hashed on the loop."""


_NOTHING = (None, None)
"""Neither ids nor a request id."""
_decoder = msgspec.json.Decoder(DecisionRequest)
_OPTIONS = ("deferred", "subject", "exclude", "pin", "k", "examination")
_DEFAULTS = {name: getattr(DecisionRequest(), name) for name in _OPTIONS}


def routes(context: AppContext) -> list[Route]:
    """Bind the handler to its operation."""
    access, body_reader, limits = context.access, context.body_reader, context.settings
    fast_json = FastJson(max_actions=limits.max_actions)

    def parse(body: bytes, info: "BanditInfo") -> Parsed:
        fast = fast_json.read(body, info.dim)
        if fast is None:
            return _parse_json(body, info, limits)
        return DecisionCall(fast[0], None) if fast[1:] == _NOTHING else _check_ids(ParsedDecision(*fast))

    queue = DecisionQueue(context, parse)
    batches = BatchParser(limits, _parse_json, check=_check_ids)

    async def decide(request: Request) -> Response:
        info = await access.find(request.bandit)  # an unknown bandit is refused before the body is read
        body, kind = await body_reader.read(request)
        query_id, key = query_param(request, "request_id"), read_idempotency_key(request)
        source: bytes | Parsed = body  # which the queue parses
        if kind == NPY:
            source = _parse_array(body, query_id, info, limits.max_actions)
        elif query_id is not None:
            raise invalid("request_id must stand in the body, where that is JSON", "request_id")
        elif is_batch(body):
            outcomes = await access.decide_batch(info.name, await batches.parse(body, info, key))
            return json_response(to_outcomes(outcomes), 201)
        elif _is_slow(body):
            source = await asyncio.to_thread(_parse_json, body, info, limits, key)
        elif key is not None:
            source = _parse_json(body, info, limits, key)
        if key is not None and isinstance(source, ParsedDecision):
            source = use_key(source, key)
        return json_response(await queue.decide(info, source), 201)

    return [Route(operations.DECIDE, decide)]


def _is_slow(body: bytes) -> bool:
    """Tell whether parsing would hold other requests up: a large body, or many features to be joined and hashed."""
    return len(body) > LARGE_BODY or (len(body) > _SMALL_FEATURES and body.find(b"{", body.find(b"{") + 1) >= 0)


def _parse_json(body: bytes, info: "BanditInfo", limits: Settings, key: str | None = None) -> ParsedDecision:
    """Parse a request; `key` is its request id where it has none of its own."""
    request: DecisionRequest = decode_json(body, _decoder)
    if request.request_id is None and key is not None:
        request = msgspec.structs.replace(request, request_id=key)
    if request.actions is None:
        return _parse_pick(request)
    if request.candidates is not None:
        raise invalid("candidates is for decisions among a catalogue, without actions", "candidates")
    if request.search != "exact":
        raise invalid("search is for decisions among a catalogue, without actions", "search")
    most = limits.max_actions
    if not 1 <= len(request.actions) <= most:
        raise invalid(f"actions must be 1 to {most} (the setting max_actions); got {len(request.actions)}", "actions")
    if isinstance(request.actions[0], DescribedAction):
        return parse_features(request, request.actions, info, limits.max_terms)
    if request.context is not None:
        raise invalid("context is for actions that have features", "context")
    rows = _to_array(request.actions, info.dim)
    plain = ParsedDecision(rows, request.ids, request.request_id)
    return _check_ids(_take_options(plain, request))


def _take_options(decision: ParsedDecision, request: DecisionRequest) -> ParsedDecision:
    options = {name: getattr(request, name) for name in _OPTIONS}
    return decision if options == _DEFAULTS else msgspec.structs.replace(decision, **options)


def _to_array(rows: list[list[float] | DescribedAction], dim: int) -> npt.NDArray[np.float64]:
    for position, row in enumerate(rows):
        if not isinstance(row, list):
            raise invalid("actions must all be rows of numbers, or all have features", "actions")
        if len(row) != dim:
            raise invalid(
                f"actions must have {dim} columns, one per dimension; row {position} has {len(row)}", "actions"
            )
    return np.array(rows, np.float64)


def _parse_pick(request: DecisionRequest) -> ParsedDecision:
    """Parse a request for a decision among the bandit's catalogue."""
    if request.ids is not None:
        raise invalid("ids must be left out without actions: candidates are the ids of those to choose from", "ids")
    if request.pin is not None:
        raise invalid("pin must be left out without actions: it may be the only one of the candidates", "pin")
    pick = check_pick(request.context, request.candidates, request.exclude, request.search, find_index)
    found = ParsedDecision(None, None, request.request_id, pick=pick)
    return _take_options(found, msgspec.structs.replace(request, exclude=None))  # the pick has it


def parse_features(
    request: DecisionRequest, given: list[list[float] | DescribedAction], info: "BanditInfo", max_terms: int
) -> ParsedDecision:
    """Parse a request whose actions have features."""
    if request.ids is not None:
        raise invalid("ids must be left out where actions have an id each", "ids")
    actions = [action for action in given if isinstance(action, DescribedAction)]
    if len(actions) != len(given):
        raise invalid("actions must all be rows of numbers, or all have features", "actions")
    context = request.context or {}
    context_terms = 1 + _count_terms(context)
    if sum(context_terms * (1 + _count_terms(action.features)) for action in actions) > max_terms:
        raise invalid(
            f"features must give at most {max_terms} terms, products included (the setting max_terms)", "actions"
        )
    rows = encode_features(info, context, [action.features for action in actions])
    digest = None
    if request.request_id is not None:
        digest = digest_features(context, [(action.id, action.features) for action in actions])
    described = (context, [action.features for action in actions])
    ids = [action.id for action in actions]
    return _take_options(ParsedDecision(rows, ids, request.request_id, digest, described), request)


def _count_terms(features: Features) -> int:
    return sum(len(value) if isinstance(value, list) else 1 for value in features.values())


def _parse_array(body: bytes, request_id: str | None, info: "BanditInfo", max_actions: int) -> ParsedDecision:
    """Parse an array; its request id stands in the query."""
    if request_id is not None and not 1 <= len(request_id) <= MAX_ID_LENGTH:
        raise invalid(f"request_id must be of 1 to {MAX_ID_LENGTH} characters", "request_id")
    rows = parse_npy(body)
    count, columns = rows.shape
    if columns != info.dim:
        raise invalid(f"actions must have {info.dim} columns, one per dimension; got {columns}", "actions")
    if count > max_actions:
        raise invalid(f"actions must be 1 to {max_actions} (the setting max_actions); got {count}", "actions")
    return ParsedDecision(rows, None, request_id)


def _check_ids(parsed: ParsedDecision) -> ParsedDecision:
    """Refuse ids that are more or fewer than the actions."""
    if parsed.rows is not None and parsed.ids is not None and len(parsed.ids) != len(parsed.rows):
        raise invalid(f"ids must be one for each of the {len(parsed.rows)} actions; got {len(parsed.ids)}", "ids")
    return parsed
