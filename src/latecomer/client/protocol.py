"""What is said and what it means, without a network: requests as data, answers as records, errors as errors."""

import io
import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import numpy as np
from msgspec import Struct

from latecomer import errors
from latecomer.durations import Span
from latecomer.service.bandit.verdicts import ReportWarning
from latecomer.service.durations import format_window
from latecomer.service.feature_values import FeatureRow, to_plain_actions, to_plain_features
from latecomer.service.messages import (
    BanditInfo,
    BanditStats,
    Conversion,
    DecisionAnswer,
    Revocation,
    Verdict,
    decision_id_of,
)
from latecomer.service.scales import parse_scales
from latecomer.timestamps import parse_datetime
from latecomer.validation import short_repr

T = TypeVar("T")
Actions = np.ndarray[Any, np.dtype[Any]] | Sequence[Sequence[float]]

LARGEST = 10_000
"""Conversions in one request; more are sent in several."""
PASSING = frozenset({408, 502, 503, 504})
"""Answers after which the same request may do better."""
COMPILING = 120.0
"""Seconds for a bandit of a new dimension, for which machine code is made."""
_LONGEST_WAIT = 5.0


class Call(Struct, Generic[T], frozen=True, kw_only=True):
    """A request, and the type of its answer. Every call may be sent again: the server counts it once."""

    method: str
    path: str
    gives: Any
    """T, which may be a union."""
    content: bytes | None = None
    kind: str = "application/json"
    patience: float = 0.0
    """Seconds that its answer may take, where that is longer than usual."""
    done_before: int = 0
    """The status that tells a call which is sent again that it was heard the first time; the result is None then."""


class _Bandits(Struct, frozen=True):
    bandits: list[BanditInfo]


class _Verdicts(Struct, frozen=True):
    verdicts: list[Verdict]
    warnings: list[ReportWarning] = []


class _Problem(Struct, frozen=True):
    code: str
    message: str
    field: str | None = None


class _ErrorBody(Struct, frozen=True):
    error: _Problem


def base_url(url: str) -> str:
    """Where a server is; http where no scheme is said.

    >>> base_url("localhost:8080")
    'http://localhost:8080'
    """
    found = url.strip() if isinstance(url, str) else ""
    found = found if "://" in found else f"http://{found}"
    parts = urlsplit(found)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.InputError(f"url must be an address such as http://127.0.0.1:8080; got {short_repr(url)}")
    return found


def without_secrets(url: str) -> str:
    """Give an address as anybody may read it: without a user, a password and a query.

    >>> without_secrets("https://me:secret@example.org:8443/bandits?token=secret")
    'https://example.org:8443/bandits'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def create(
    name: str,
    *,
    dim: int,
    window: Span,
    policy: str | None,
    parameters: Mapping[str, Any] | None,
    features: Mapping[str, Any] | None,
) -> Call[BanditInfo]:
    """PUT a bandit."""
    spec: dict[str, Any] = {"dim": dim, "window": format_window(window), "parameters": dict(parameters or {})}
    if policy is not None:
        spec["policy"] = policy
    if features is not None:
        spec["features"] = parse_scales(features)
    return Call(method="PUT", path=_path(name), gives=BanditInfo, content=_json(spec), patience=COMPILING)


def bandits() -> "Call[_Bandits]":
    """GET every bandit."""
    return Call(method="GET", path="/v1/bandits", gives=_Bandits)


def info(name: str) -> Call[BanditInfo]:
    """GET a bandit."""
    return Call(method="GET", path=_path(name), gives=BanditInfo)


def stats(name: str) -> Call[BanditStats]:
    """GET what it has learnt."""
    return Call(method="GET", path=f"{_path(name)}/stats", gives=BanditStats)


def delete(name: str) -> Call[BanditInfo | None]:
    """DELETE a bandit, confirmed."""
    return Call(
        method="DELETE", path=f"{_path(name)}?{urlencode({'confirm': name})}", gives=BanditInfo | None, done_before=404
    )


def decide(name: str, actions: Actions, *, ids: Sequence[str] | None, request_id: str | None) -> Call[DecisionAnswer]:
    """POST a decision; an array without ids travels as it is, in binary. There is always a request id."""
    request_id = request_id or uuid.uuid4().hex
    path = f"{_path(name)}/decisions"
    if isinstance(actions, np.ndarray) and ids is None:
        file = io.BytesIO()
        np.save(file, np.ascontiguousarray(actions, "<f8"))
        path = f"{path}?{urlencode({'request_id': request_id})}"
        return Call(method="POST", path=path, gives=DecisionAnswer, content=file.getvalue(), kind="application/x-npy")
    rows = actions.tolist() if isinstance(actions, np.ndarray) else actions
    body = {"actions": rows, "request_id": request_id} | ({} if ids is None else {"ids": list(ids)})
    return Call(method="POST", path=path, gives=DecisionAnswer, content=_json(body))


def decide_features(
    name: str, actions: Mapping[str, FeatureRow], *, context: FeatureRow | None, request_id: str | None
) -> Call[DecisionAnswer]:
    """POST a decision between actions that are known by their features."""
    described = [{"id": id_, "features": features} for id_, features in to_plain_actions(actions)]
    around = {} if context is None else to_plain_features(context, "context")
    body = {"context": around, "actions": described, "request_id": request_id or uuid.uuid4().hex}
    return Call(method="POST", path=f"{_path(name)}/decisions", gives=DecisionAnswer, content=_json(body))


def convert(name: str, conversions: Sequence[Conversion]) -> "Call[_Verdicts]":
    """POST conversions."""
    content = _json([_timed(conversion, i) for i, conversion in enumerate(conversions)])
    return Call(method="POST", path=f"{_path(name)}/conversions", gives=_Verdicts, content=content)


def _timed(conversion: Conversion, position: int) -> Conversion:
    """A conversion whose time JSON has room for: callers may give pandas' and NumPy's times too."""
    if not isinstance(conversion, Conversion):
        raise errors.InputError(f"conversions must be Conversion records; got {short_repr(conversion)}")
    if type(conversion.decision_id) is not str:
        conversion = msgspec.structs.replace(conversion, decision_id=decision_id_of(conversion.decision_id))
    if conversion.occurred_at is None or type(conversion.occurred_at) is datetime:
        return conversion
    occurred = parse_datetime(conversion.occurred_at, name=f"occurred_at of report {position}")
    return msgspec.structs.replace(conversion, occurred_at=occurred)


def revoke(name: str, revocations: Sequence[Revocation]) -> "Call[_Verdicts]":
    """POST revocations."""
    return Call(method="POST", path=f"{_path(name)}/revocations", gives=_Verdicts, content=_json(revocations))


def portions(items: Iterable[T]) -> Iterable[list[T]]:
    """As many as one request takes, at a time."""
    every = list(items)
    return (every[start : start + LARGEST] for start in range(0, len(every), LARGEST))


def result(call: Call[T], status: int, content: bytes, *, is_again: bool) -> T:
    """The answer as a record, or raised as the error that it is; `is_again` where the call was sent before."""
    if status < 400:
        return cast(T, msgspec.json.decode(content, type=call.gives))
    if is_again and status == call.done_before:
        return cast(T, None)
    try:
        problem = msgspec.json.decode(content, type=_ErrorBody).error
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a proxy's page, perhaps
        raise errors.ServiceError(f"{call.method} {call.path} was answered with {status}") from None
    kind = {400: errors.InputError, 404: errors.UnknownBanditError, 409: errors.ConflictError, 503: errors.StoreError}
    where = f" (at {problem.field})" if problem.field and not problem.message.startswith(problem.field) else ""
    raise kind.get(status, errors.ServiceError)(f"{problem.message}{where}")


def waits(retries: int) -> Iterable[float]:
    """Seconds before each further try: longer every time, and never quite the same for two clients."""
    return (min(_LONGEST_WAIT, 0.1 * 2**i) * random.uniform(0.5, 1.0) for i in range(retries))  # noqa: S311


def pause(wait: float, headers: Mapping[str, str]) -> float:
    """The same, or longer where the server asks for it."""
    asked = headers.get("retry-after", "")
    return min(_LONGEST_WAIT, max(wait, float(asked) if asked.isdecimal() else 0.0))


def _path(name: str) -> str:
    return f"/v1/bandits/{quote(name, safe='')}"


def _json(content: object) -> bytes:
    return msgspec.json.encode(content)
