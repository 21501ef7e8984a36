"""Idempotent decisions: digests of requests, and answers rebuilt from logged events.

Which round answered a request is found in `request_id_index`.
"""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.errors import ConflictError
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.messages import DecisionAnswer, check_request_id


def digest_request(request_id: str) -> bytes:
    """Return 16 bytes that identify a request id: no two ids may share them."""
    check_request_id(request_id)
    return blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=events.DIGEST).digest()


def digest_body(actions: Array, ids: Sequence[str] | None) -> bytes:
    """Return 8 bytes that identify a request's actions and ids; they tell a repeated request from a changed one."""
    data = msgspec.msgpack.encode((actions.shape, actions.tobytes(), ids))
    return blake2b(data, digest_size=events.BODY).digest()


def check_same_body(request_id: str, body: bytes, known: bytes) -> None:
    """Raise `ConflictError` where a request id comes back with another body."""
    if body != known:
        raise ConflictError(f"request_id {request_id!r} was used with another body: a new request needs a new id")


class LoggedDecision(Struct, frozen=True, kw_only=True):
    """The logged event of a decision that had a request id."""

    round: int
    index: int
    score: float
    stamp: int
    label: str | None
    """The id of the chosen action."""
    request: bytes
    body: bytes


def find_logged_decision(data: bytes, dim: int, round: int) -> LoggedDecision | None:
    """Return the decision of a round from the events of its row; None where they lack it.

    `ValueError` where the data are no events.
    """
    payload = events.Payload(data, dim)
    decisions = payload.records(events.DECISION_WITH_REQUEST)
    for place in np.flatnonzero(decisions["round"] == round).tolist():
        found = decisions[place]
        after = int(payload.numbers(events.DECISION_WITH_REQUEST)[place]) + 1
        has_label = after < len(payload.kinds) and payload.kinds[after] == events.LABEL
        return LoggedDecision(
            round=round,
            index=int(found["index"]),
            score=float(found["score"]),
            stamp=int(found["stamp"]),
            label=payload.text(after).decode() if has_label else None,
            request=bytes(found["request"]),
            body=bytes(found["body"]),
        )
    return None


def rebuild_answer(bandit: Bandit, decision: LoggedDecision, *, shift: int) -> DecisionAnswer:
    """Return the answer that a logged decision got."""
    return bandit.make_answer(
        decision.round,
        index=decision.index,
        score=decision.score,
        stamp=decision.stamp,
        shift=shift,
        label=decision.label,
    )
