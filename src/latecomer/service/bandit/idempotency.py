"""Idempotent decisions: digests of requests, and answers rebuilt from logged events.

Which round answered a request is found in `request_id_index`.
"""

import math
from collections.abc import Sequence
from hashlib import blake2b

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.errors import ConflictError
from latecomer.service.bandit import events
from latecomer.service.messages import check_request_id


def digest_request(request_id: str) -> bytes:
    """Return 16 bytes that identify a request id: no two ids may share them."""
    return blake2b(check_request_id(request_id).encode("utf-8", "surrogatepass"), digest_size=events.DIGEST).digest()


def digest_body(actions: Array, ids: Sequence[str] | None) -> bytes:
    """Return 8 bytes that identify a request's actions and ids; they tell a repeated request from a changed one."""
    data = msgspec.msgpack.encode((actions.shape, actions.tobytes(), ids))
    return blake2b(data, digest_size=events.BODY).digest()


def check_same_body(request_id: str, body: bytes, known: bytes) -> None:
    """Raise `ConflictError` where a request id comes back with another body."""
    if body != known:
        raise ConflictError(f"request_id {request_id!r} was used with another body: a new request needs a new id")


class LoggedPosition(Struct, frozen=True):
    """A position of a ranking: its event's number, the place in the request, the action's id, and the propensity."""

    number: int
    place: int
    label: str | None
    included: float | None


class LoggedDecision(Struct, frozen=True, kw_only=True):
    """The logged event of a decision that had a request id."""

    round: int
    index: int
    score: float
    stamp: int
    label: str | None
    """The id of the chosen action."""
    propensity: float | None
    is_control: bool
    request: bytes
    body: bytes
    probabilities: list[float] | None = None
    ranking: Sequence[LoggedPosition] = ()


def find_logged_decision(data: bytes, dim: int, round: int) -> LoggedDecision | None:
    """Return the decision of a round from the events of its row; None where they lack it.

    `ValueError` where the data are no events.
    """
    payload = events.Payload(data, dim)
    decisions = payload.records(events.DECISION_WITH_REQUEST)
    for place in np.flatnonzero(decisions["round"] == round).tolist():
        asked, number = decisions[place], int(payload.numbers(events.DECISION_WITH_REQUEST)[place])
        ranking = _read_ranking(payload, number)
        number = ranking[0].number if ranking else number
        found = payload.records(events.DECISION, np.array([number]))[0]
        label, signed = read_annotations(payload, number)
        index, probabilities = _read_request(payload, number, int(found["index"]))
        return LoggedDecision(
            round=int(found["round"]),
            index=index,
            score=float(found["score"]),
            stamp=int(found["stamp"]),
            label=label,
            propensity=None if signed is None else abs(signed),
            is_control=signed is not None and signed < 0.0,
            request=bytes(asked["request"]),
            body=bytes(asked["body"]),
            probabilities=probabilities,
            ranking=ranking,
        )
    return None


def _read_ranking(payload: events.Payload, last: int) -> list[LoggedPosition]:
    """Return the positions of the ranking that ends with the decision of that number; none where it is no ranking."""
    decisions = payload.numbers(events.DECISION)
    place, found, size = int(np.searchsorted(decisions, last)), list[LoggedPosition](), 1
    while len(found) < size and place >= 0:
        number = int(decisions[place])
        end = int(decisions[place + 1]) if place + 1 < len(decisions) else len(payload.kinds)
        ranked = np.flatnonzero(payload.kinds[number:end] == events.RANKED) + number
        if not len(ranked):
            return []
        record = payload.records(events.RANKED, ranked[:1])[0]
        size, included = int(record["size"]), float(record["included"])
        index = int(payload.records(events.DECISION, decisions[place : place + 1])[0]["index"])
        label, known = read_annotations(payload, number)[0], None if math.isnan(included) else included
        found.insert(0, LoggedPosition(number, _read_request(payload, number, index)[0], label, known))
        place -= 1
    return found


def read_annotations(payload: events.Payload, number: int) -> tuple[str | None, float | None]:
    """Return the label and the signed propensity of the decision of that number, where it has them."""
    label, signed = None, None
    for after in range(number + 1, len(payload.kinds)):
        kind = payload.kinds[after]
        if kind == events.LABEL:
            label = payload.text(after).decode()
        elif kind == events.PROPENSITY:
            signed = float(payload.records(kind, np.array([after]))["signed"][0])
        elif kind not in events.ANNOTATIONS:
            break
    return label, signed


def _read_request(payload: events.Payload, number: int, index: int) -> tuple[int, list[float] | None]:
    """Return the choice's place in the request of the decision of that number, and the probabilities if it has them."""
    probabilities = None
    for after in range(number + 1, len(payload.kinds)):
        kind = payload.kinds[after]
        if kind == events.PLACE:
            index = int(payload.records(kind, np.array([after]))["place"][0])
        elif kind == events.PROBABILITIES:
            probabilities = np.frombuffer(payload.text(after), "<f8").tolist()
        elif kind not in events.ANNOTATIONS:
            break
    return index, probabilities
