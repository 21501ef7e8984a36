"""Idempotent decisions: digests of requests, checks of their inputs, and answers rebuilt from logged events."""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from numpy import ndarray

from latecomer.core.state import Array
from latecomer.errors import ConflictError, InputError
from latecomer.policies.base.action_validation import DOUBLE, check_actions
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.messages import MAX_ID_LENGTH, DecisionAnswer, check_request_id
from latecomer.validation import short_repr


def check_action_array(actions: npt.ArrayLike, dim: int) -> Array:
    """Return a (K, d) array of doubles; one that has that form already is returned as it is."""
    if (
        type(actions) is ndarray
        and actions.dtype is DOUBLE
        and actions.ndim == 2
        and actions.flags.carray
        and actions.shape[1] == dim
        and actions.shape[0]
    ):
        return actions
    return check_actions(actions, dim)


def check_action_ids(ids: Sequence[str], count: int) -> None:
    """Raise `InputError` unless there is one short text for each action."""
    if not isinstance(ids, list | tuple):
        raise InputError(
            f"ids must be a list of texts, one for each action; got {type(ids).__name__}: make it a list", field="ids"
        )
    if len(ids) != count:
        raise InputError(f"ids must name every action, {count}; got {len(ids)}", field="ids")
    for id_ in ids:
        if not isinstance(id_, str) or len(id_) > MAX_ID_LENGTH:
            raise InputError(
                f"ids must be texts of at most {MAX_ID_LENGTH} characters; got {short_repr(id_)}", field="ids"
            )
    try:
        "".join(ids).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"ids must be Unicode; got a lone surrogate ({error.reason})", field="ids") from None


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
