"""What a request asks, made certain; and the same request, the same answer, read back from the log."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import apsw
import msgspec
import numpy as np
import numpy.typing as npt
from numpy import ndarray

from latecomer.core.state import Array
from latecomer.errors import ConflictError, InputError
from latecomer.policies.base.action_validation import DOUBLE, check_actions
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.messages import DecisionAnswer
from latecomer.service.storage.commit import Commit, committed
from latecomer.service.storage.request_segments import bucket_reader, damaged_index
from latecomer.service.storage.rows import damaged, row_of_round
from latecomer.validation import short_repr

LONGEST = 200
"""Characters of an id."""


def asked_actions(actions: npt.ArrayLike, dim: int) -> Array:
    """A (K, d) array of doubles; most come as one, and are not looked at twice."""
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


def request_digest(request_id: str) -> bytes:
    """16 bytes that stand for a request id, which must never meet another's."""
    if not isinstance(request_id, str) or not 0 < len(request_id) <= LONGEST:
        raise InputError(
            f"request_id must be a text of 1 to {LONGEST} characters; got {short_repr(request_id)}", field="request_id"
        )
    return blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=events.DIGEST).digest()


def body_digest(actions: Array, ids: Sequence[str] | None) -> bytes:
    """8 bytes that stand for what a request asks, where the caller has none of its own; they need only differ."""
    data = msgspec.msgpack.encode((actions.shape, actions.tobytes(), ids))
    return blake2b(data, digest_size=events.BODY).digest()


def checked_ids(ids: Sequence[str], count: int) -> None:
    """One short text for each action, in their order."""
    if not isinstance(ids, list | tuple):
        raise InputError(
            f"ids must be a list of texts, one for each action; got {type(ids).__name__}: make it a list", field="ids"
        )
    if len(ids) != count:
        raise InputError(f"ids must name every action, {count}; got {len(ids)}", field="ids")
    for id_ in ids:
        if not isinstance(id_, str) or len(id_) > LONGEST:
            raise InputError(f"ids must be texts of at most {LONGEST} characters; got {short_repr(id_)}", field="ids")
    try:
        "".join(ids).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"ids must be Unicode; got a lone surrogate ({error.reason})", field="ids") from None


def answered(
    connection: apsw.Connection, bandit: Bandit, digests: bytes, request_id: str
) -> tuple[DecisionAnswer, Commit] | None:
    """The answer that a request got before, and its ticket; `ConflictError` where it had another body."""
    request, body = digests[: events.DIGEST], digests[events.DIGEST :]
    round_ = bandit.requests.find(request, bucket_reader(connection, bandit.number))
    if round_ is None:
        return None
    found = bandit.recent.get(request) or _read_back(connection, bandit, round_, request)
    if found is None:
        return None
    answer, before, ticket = found
    if before != body:
        raise ConflictError(f"request_id {request_id!r} was used with another body: a new request needs a new id")
    return answer, ticket


def _read_back(
    connection: apsw.Connection, bandit: Bandit, round: int, request: bytes
) -> tuple[DecisionAnswer, bytes, Commit] | None:
    """The answer that a round got, and its body's digest; None where the log has been pruned."""
    row = row_of_round(connection, bandit.number, round)
    if row is None:
        return None
    try:
        found, label = _event_of(row.payload, bandit.dim, round)
    except ValueError as error:
        raise damaged(row.bandit, row.seq, str(error)) from error
    if found is None:
        return None
    if bytes(found["request"]) != request:
        raise damaged_index(bandit.number)
    answer = bandit.answer(
        round, index=int(found["index"]), score=float(found["score"]), stamp=int(found["stamp"]), label=label
    )
    return answer, bytes(found["body"]), committed()


def _event_of(payload: bytes, dim: int, round: int) -> tuple[Any, str | None]:
    """The event of a decision that had a request id, and the id of its action, which comes after it."""
    told = events.Payload(payload, dim)
    asked = told.records(events.DECISION_WITH_REQUEST)
    for place in np.flatnonzero(asked["round"] == round).tolist():
        after = int(told.numbers(events.DECISION_WITH_REQUEST)[place]) + 1
        has_label = after < len(told.kinds) and told.kinds[after] == events.LABEL
        return asked[place], told.text(after).decode() if has_label else None
    return None, None
