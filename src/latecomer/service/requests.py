"""The same request, the same answer: requests by their digests, and answers read back from the log."""

import hashlib
from collections.abc import Sequence

import apsw
import msgspec

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.service import events
from latecomer.service.bandit import Bandit
from latecomer.service.log import Row, key_of, row_at
from latecomer.service.messages import Answer

_LONGEST = 256


def request_digest(request_id: str) -> bytes:
    """16 bytes that stand for a request id."""
    if not isinstance(request_id, str) or not 0 < len(request_id) <= _LONGEST:
        raise InputError(f"request_id must be a text of 1 to {_LONGEST} characters; got {request_id!r}")
    return _digest(request_id.encode("utf-8", "surrogatepass"))


def body_digest(actions: Array, ids: Sequence[str] | None) -> bytes:
    """16 bytes that stand for what a request asks, where the caller has none of its own."""
    return _digest(msgspec.msgpack.encode((actions.shape, actions.tobytes(), ids)))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=events.DIGEST).digest()


def checked_ids(ids: Sequence[str] | None, count: int) -> None:
    """One short text for each action."""
    if ids is None:
        return
    if len(ids) != count:
        raise InputError(f"ids must name every action, {count}; got {len(ids)}")
    for id_ in ids:
        if not isinstance(id_, str) or len(id_) > _LONGEST:
            raise InputError(f"ids must be texts of at most {_LONGEST} characters; got {id_!r}")
    try:
        "".join(ids).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"ids must be Unicode; got a lone surrogate ({error.reason})") from None


def read_back(connection: apsw.Connection, bandit: Bandit, round: int) -> tuple[Answer, bytes] | None:
    """The answer that a round got, and its body's digest; None where the log has been pruned."""
    row = _row_of(connection, bandit.number, round)
    if row is None:
        return None
    found = label = None
    for kind, run in events.runs(row.payload, bandit.dim):
        if isinstance(run, bytes):
            label = run.decode() if found is not None and kind == events.LABEL else None
            if found is not None:
                break
            continue
        if found is not None:
            break
        if kind == events.ASKED and run["round"][0] <= round <= run["round"][-1]:
            found = run[round - int(run["round"][0])]
            if round != run["round"][-1]:
                break
    if found is None:
        return None
    answer = bandit.answer(
        round, index=int(found["index"]), score=float(found["score"]), stamp=int(found["stamp"]), label=label
    )
    return answer, bytes(found["body"])


def _row_of(connection: apsw.Connection, number: int, round: int) -> Row | None:
    """The first row that ends with that round or a later one: rounds only grow, so halving finds it."""
    query = "SELECT min(key), max(key) FROM log WHERE key BETWEEN ? AND ?"
    ((low, high),) = connection.execute(query, (key_of(number, 0), key_of(number + 1, 0) - 1))
    if low is None:
        return None
    while low < high:
        middle = (low + high) // 2
        ((rounds,),) = connection.execute("SELECT rounds FROM log WHERE key = ?", (middle,))
        low, high = (low, middle) if rounds >= round else (middle + 1, high)
    return row_at(connection, number, low - key_of(number, 0))
