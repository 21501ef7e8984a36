"""Azure Personalizer's Rank, Reward and Activate, mapped to a bandit: docs/how-to/azure-personalizer.md.

An event id is the request id of its decision, and its subject: a reward is a conversion that names the subject.
"""

import uuid
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from latecomer.errors import ConflictError
from latecomer.service.http import personalizer_operations as operations
from latecomer.service.http.bodies import DecisionRequest, DescribedAction
from latecomer.service.http.context import AppContext
from latecomer.service.http.decision_queue import DecisionQueue
from latecomer.service.http.errors import HTTPError, invalid
from latecomer.service.http.pending_decision import ParsedDecision
from latecomer.service.http.personalizer_messages import (
    RankedAction,
    RankRequest,
    RankResponse,
    RewardRequest,
    flatten_features,
)
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response, json_response
from latecomer.service.http.router import Route
from latecomer.service.http.routes.decisions import parse_features
from latecomer.service.messages import MAX_ID_LENGTH, BanditInfo, Conversion, EventActivation, RankedAnswer, Verdict
from latecomer.validation import short_repr

_rank_decoder = msgspec.json.Decoder(RankRequest)
_reward_decoder = msgspec.json.Decoder(RewardRequest)


def routes(context: AppContext) -> list[Route]:
    """Bind the handlers to their operations."""
    access, limits = context.access, context.settings
    queue = DecisionQueue(context, _refuse_bytes)

    async def rank(request: Request) -> Response:
        info = await access.find(request.bandit)
        asked: RankRequest = await context.body_reader.read_json(request, _rank_decoder)
        if not 1 <= len(asked.actions) <= limits.max_actions:
            raise invalid(f"actions must be 1 to {limits.max_actions} (the setting max_actions)", "actions")
        event = asked.event_id or uuid.uuid4().hex
        try:
            answer = await queue.decide(info, _parse(asked, event, info, limits.max_terms))
        except ConflictError:
            message = f"eventId {short_repr(event)} was used for another request: a new event needs a new id"
            raise HTTPError(409, message, field="eventId") from None
        if not isinstance(answer, RankedAnswer):
            raise HTTPError(409, "eventId was used as a request_id by a decision that was no Rank", field="eventId")
        return json_response(_rank(asked, event, answer), 201)

    async def reward(request: Request) -> Response:
        info = await access.find(request.bandit)
        asked: RewardRequest = await context.body_reader.read_json(request, _reward_decoder)
        if not 0.0 <= asked.value <= 1.0:
            raise invalid(f"value must be from 0 to 1: shift and scale rewards; got {asked.value:g}", "value")
        scale = 1.0 if isinstance(info.reward, str) else info.reward.scale
        conversion = Conversion(value=asked.value * scale, subject=_shorten(request.event))
        (verdict,) = await access.report("convert", request.bandit, [conversion])
        return _respond(verdict, "it was not ranked here, or not activated, or its window has closed")

    async def activate(request: Request) -> Response:
        await access.find(request.bandit)
        activation = EventActivation(_shorten(request.event))
        (verdict,) = await access.report("activate", request.bandit, [activation])
        return _respond(verdict, "it was not deferred here, or has waited for longer than the activation timeout")

    return [
        Route(operations.RANK, rank),
        Route(operations.REWARD_EVENT, reward),
        Route(operations.ACTIVATE_EVENT, activate),
    ]


def _refuse_bytes(body: bytes, info: BanditInfo) -> ParsedDecision:
    raise AssertionError("a Rank call is parsed before it is queued")


def _shorten(event: str) -> str:
    """Return an event id, which may be of 256 characters, as a request id and subject."""
    return event if len(event) <= MAX_ID_LENGTH else f"event-{blake2b(event.encode()).hexdigest()}"


def _parse(asked: RankRequest, event: str, info: BanditInfo, max_terms: int) -> ParsedDecision:
    ids = [action.id for action in asked.actions]
    if len(set(ids)) < len(ids):
        raise invalid("actions must have different ids", "actions")
    described: list[list[float] | DescribedAction] = [
        DescribedAction(action.id, flatten_features(action.features)) for action in asked.actions
    ]
    request = DecisionRequest(
        described,
        request_id=_shorten(event),
        context=flatten_features(asked.context_features or []),
        deferred=bool(asked.defer_activation),
        subject=_shorten(event),
        exclude=list(asked.excluded_actions or []) or None,
    )
    return msgspec.structs.replace(parse_features(request, described, info, max_terms), probabilities=True)


def _rank(asked: RankRequest, event: str, answer: RankedAnswer) -> RankResponse:
    """Order the actions; those that were left out stay in their places, with probability 0."""
    left_out = set(asked.excluded_actions or [])
    ids, known = [action.id for action in asked.actions], answer.probabilities
    free: Sequence[int] = [place for place, id_ in enumerate(ids) if id_ not in left_out]
    ordered = iter(sorted(free, key=lambda place: (place != answer.index, -known[place])))
    places = [place if id_ in left_out else next(ordered) for place, id_ in enumerate(ids)]
    return RankResponse([RankedAction(ids[place], known[place]) for place in places], event, ids[answer.index])


def _respond(verdict: Verdict, reason: str) -> Response:
    if verdict in (Verdict.ACCEPTED, Verdict.DUPLICATE):
        return Response(204)
    raise HTTPError(404, f"the event is not known, or not any more: {reason}", field="eventId")
