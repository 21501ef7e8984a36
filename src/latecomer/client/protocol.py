"""The protocol of the clients, without a network: requests as data, answers as records, error bodies as errors."""

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from socket import gaierror
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from latecomer import errors
from latecomer.service.bandit.verdict_list import Attributed, ReportWarning
from latecomer.service.bandit_report import BanditReport
from latecomer.service.decision_report import DecisionExplanation
from latecomer.service.messages import (
    Activation,
    BanditInfo,
    BanditStats,
    Conversion,
    Correction,
    DecisionAnswer,
    ImportAnswer,
    ImportBatch,
    Revocation,
    StageReport,
    Verdict,
    decision_id_of,
)
from latecomer.timestamps import Moment, parse_datetime
from latecomer.validation import short_repr

T = TypeVar("T")

MAX_CONVERSIONS = 10_000
"""Conversions in one request; more are sent in several."""
TRANSIENT = frozenset({408, 502, 503, 504})
"""Statuses after which the same request is sent again."""
IMPORT_TIMEOUT = 60.0
"""Seconds for a batch of an import, which the server may have to apply as plain Python."""
REPORT_TIMEOUT = 60.0
"""Seconds for a report, which may have to read the whole log."""
_MAX_WAIT = 5.0


def explain_silence(url: str, error: Exception) -> errors.ServiceError:
    """Make the error of a server that cannot be reached, or that gives no answer."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ConnectionRefusedError | gaierror):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ConnectionRefusedError) or "Connection refused" in str(error):
        why = "connection refused; is the server running?"
    elif isinstance(cause, gaierror):
        why = "its name is not known; check the address"
    else:
        why = f"{type(error).__name__}{f': {error}' if str(error) else ''}"
    return errors.ServiceError(f"{url} does not answer: {why}")


class Call(Struct, Generic[T], frozen=True, kw_only=True):
    """A request, and the type of its answer. Every call may be sent again: the server counts it once."""

    method: str
    path: str
    gives: Any
    """The answer's type, T, which may be a union."""
    content: bytes | None = None
    content_type: str = "application/json"
    timeout: float = 0.0
    """Seconds that its answer may take, where that is longer than the client's timeout."""
    done_status: int = 0
    """The status that means, for a call that is sent again, that the first one succeeded; the result is None then."""


class _Bandits(Struct, frozen=True):
    bandits: list[BanditInfo]


class _Verdicts(Struct, frozen=True):
    verdicts: list[Verdict]
    warnings: list[ReportWarning] = []
    attributed: list[Attributed] = []


class _Freeze(Struct, frozen=True):
    frozen: bool


class _Problem(Struct, frozen=True):
    code: str
    message: str
    field: str | None = None


class _ErrorBody(Struct, frozen=True):
    error: _Problem


def bandits() -> "Call[_Bandits]":
    """Make the call that lists the bandits."""
    return Call(method="GET", path="/v1/bandits", gives=_Bandits)


def info(name: str) -> Call[BanditInfo]:
    """Make the call that shows a bandit."""
    return Call(method="GET", path=bandit_path(name), gives=BanditInfo)


def stats(name: str) -> Call[BanditStats]:
    """Make the call that shows a bandit's statistics."""
    return Call(method="GET", path=f"{bandit_path(name)}/stats", gives=BanditStats)


def report(name: str, *, since: Moment | None = None, until: Moment | None = None) -> Call[BanditReport]:
    """Make the call for a bandit's report."""
    given = {"from": parse_datetime(since, name="since"), "to": parse_datetime(until, name="until")}
    asked = {key: moment.isoformat() for key, moment in given.items() if moment is not None}
    query = f"?{urlencode(asked)}" if asked else ""
    return Call(method="GET", path=f"{bandit_path(name)}/report{query}", gives=BanditReport, timeout=REPORT_TIMEOUT)


def explain(name: str, decision: DecisionAnswer | str) -> Call[DecisionExplanation]:
    """Make the call that explains a decision."""
    query = urlencode({"decision_id": decision_id_of(decision)})
    return Call(method="GET", path=f"{bandit_path(name)}/explanation?{query}", gives=DecisionExplanation)


def delete(name: str) -> Call[BanditInfo | None]:
    """Make the call that deletes a bandit, with its confirmation."""
    return Call(
        method="DELETE",
        path=f"{bandit_path(name)}?{urlencode({'confirm': name})}",
        gives=BanditInfo | None,
        done_status=404,
    )


def import_batch(name: str, batch: ImportBatch) -> Call[ImportAnswer]:
    """Make the call that imports a batch of decisions that others made."""
    content = encode_json(batch)
    return Call(
        method="POST", path=f"{bandit_path(name)}/imports", gives=ImportAnswer, content=content, timeout=IMPORT_TIMEOUT
    )


def convert(name: str, conversions: Sequence[Conversion]) -> "Call[_Verdicts]":
    """Make the call that reports conversions."""
    content = encode_json([_normalise(conversion, i) for i, conversion in enumerate(conversions)])
    return Call(method="POST", path=f"{bandit_path(name)}/conversions", gives=_Verdicts, content=content)


def _normalise(conversion: Conversion, position: int) -> Conversion:
    """Return the conversion with plain types: callers may give an answer as its id, and times of pandas and NumPy."""
    if not isinstance(conversion, Conversion):
        raise errors.InputError(f"conversions must be Conversion records; got {short_repr(conversion)}")
    named = conversion.decision_id
    if named is not None and type(named) is not str:
        conversion = msgspec.structs.replace(conversion, decision_id=decision_id_of(named))
    if conversion.occurred_at is None or type(conversion.occurred_at) is datetime:
        return conversion
    try:
        occurred = parse_datetime(conversion.occurred_at, name=f"occurred_at of report {position}")
    except errors.InputError as error:
        error.field = f"[{position}].occurred_at"
        raise
    return msgspec.structs.replace(conversion, occurred_at=occurred)


def revoke(name: str, revocations: Sequence[Revocation]) -> "Call[_Verdicts]":
    """Make the call that takes conversions back."""
    return Call(
        method="POST", path=f"{bandit_path(name)}/revocations", gives=_Verdicts, content=encode_json(revocations)
    )


def correct(name: str, corrections: Sequence[Correction]) -> "Call[_Verdicts]":
    """Make the call that replaces what decisions are credited with."""
    return Call(
        method="POST", path=f"{bandit_path(name)}/corrections", gives=_Verdicts, content=encode_json(corrections)
    )


def stage(name: str, reports: Sequence[StageReport]) -> "Call[_Verdicts]":
    """Make the call that reports stages."""
    return Call(method="POST", path=f"{bandit_path(name)}/stages", gives=_Verdicts, content=encode_json(reports))


def activate(name: str, activations: Sequence[Activation]) -> "Call[_Verdicts]":
    """Make the call that reports deferred decisions that were shown."""
    return Call(
        method="POST", path=f"{bandit_path(name)}/activations", gives=_Verdicts, content=encode_json(activations)
    )


def freeze(name: str, is_frozen: bool) -> "Call[_Freeze]":
    """Make the call that has a bandit decide without learning, or learn again."""
    content = encode_json({"frozen": is_frozen})
    return Call(method="PUT", path=f"{bandit_path(name)}/freeze", gives=_Freeze, content=content)


def split_batches(items: Iterable[T]) -> Iterable[list[T]]:
    """Yield lists of as many items as one request takes."""
    found = list(items)
    return (found[start : start + MAX_CONVERSIONS] for start in range(0, len(found), MAX_CONVERSIONS))


def parse_answer(call: Call[T], status: int, content: bytes, *, is_retry: bool) -> T:
    """Return the answer as a record, or raise its error. `is_retry`: the call was sent before."""
    if status < 400:
        return cast(T, msgspec.json.decode(content, type=call.gives))
    if is_retry and status == call.done_status:
        return cast(T, None)
    try:
        problem = msgspec.json.decode(content, type=_ErrorBody).error
    except (msgspec.MsgspecError, UnicodeDecodeError):  # perhaps a proxy's page
        raise errors.ServiceError(f"{call.method} {call.path} was answered with {status}") from None
    kind = {404: errors.UnknownBanditError, 409: errors.ConflictError, 503: errors.StoreError}
    where = f" (at {problem.field})" if problem.field and not problem.message.startswith(problem.field) else ""
    if status == 400:
        raise errors.InputError(f"{problem.message}{where}", field=problem.field)
    raise kind.get(status, errors.ServiceError)(f"{problem.message}{where}")


def retry_delays(retries: int) -> Iterable[float]:
    """Yield the seconds before each further try: longer every time, and random, so that clients do not come at once."""
    return (min(_MAX_WAIT, 0.1 * 2**i) * random.uniform(0.5, 1.0) for i in range(retries))  # noqa: S311


def extend_delay(delay: float, headers: Mapping[str, str]) -> float:
    """Return the delay, or a longer one where the server's Retry-After asks for it."""
    retry_after = headers.get("retry-after", "")
    return min(_MAX_WAIT, max(delay, float(retry_after) if retry_after.isdecimal() else 0.0))


def bandit_path(name: str) -> str:
    """Return the path of a bandit."""
    return f"/v1/bandits/{quote(name, safe='')}"


def encode_json(content: object) -> bytes:
    """Return a body as JSON, in which values of NumPy and of tables are plain."""
    return msgspec.json.encode(content, enc_hook=_to_plain)


def _to_plain(value: Any) -> Any:
    """Return numbers and arrays of NumPy, and columns of a table, as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise errors.InputError(f"a request must be of numbers, texts and lists; got {short_repr(value)}")
