"""The one shape of every error: {"error": {"code", "message", "field"?}}."""

import re
from collections.abc import Sequence
from typing import get_args, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from latecomer.validation import suggest

CODES = {
    400: "invalid",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    431: "headers_too_large",
    500: "internal",
    503: "unavailable",
}
"""Every status of an error, with its code: a client may look at either."""
MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The errors that decoding a hostile body may raise."""

_MAX_MESSAGE, _MAX_NAME = 1000, 64
_TIME = "2026-01-05T12:00:00Z"
"""A time as RFC 3339 has it."""
_PLACE = re.compile(r"^(?P<rule>.*) - at `(?P<place>[^`]*)`$", re.DOTALL)
"""msgspec's message: the rule, and the place in the body, which it has nowhere else."""

_FIELD = re.compile(r"(?:(?P<missing>missing required)|unknown) field `(?P<field>[^`]*)`( - at `(?P<place>[^`]*)`)?$")
_EXAMPLES = {
    "dim": "8",
    "window": '"7d"',
    "actions": "[[0.6, 0.0], [0.0, 0.8]]",
    "decision_id": '"1-…", as the decision\'s answer has it',
    "policy": '"LinUCB"',
}
"""Values of fields that a request must have."""


class Problem(Struct, frozen=True):
    """An error: a code for programs, a sentence for people, and the field where there is one."""

    code: str
    message: str
    field: str | UnsetType = UNSET


class ErrorBody(Struct, frozen=True):
    """The body of every answer that is not a success."""

    error: Problem


class HTTPError(Exception):
    """An error with its status. `key` is the id of the key that was sent, for the log alone."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str | None = None,
        key: str | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.key, self.headers = status, message, field, key, headers


def invalid(message: str, field: str | None = None) -> HTTPError:
    """Make the error of a request that breaks a rule."""
    return HTTPError(400, message, field=field)


def explain_malformed(error: Exception, expected: object = None) -> HTTPError:
    """Make the error of a body that cannot be decoded; the place that the decoder names becomes the field.

    `expected` is the type that was to be decoded, whose fields are suggested for an unknown one.
    """
    if isinstance(error, RecursionError):
        return invalid("the body must not be nested so deeply")
    if isinstance(error, UnicodeDecodeError):
        return invalid("the body must be UTF-8")
    if str(error) == "Input data was truncated":  # msgspec says this in both cases
        return invalid("the body must be whole JSON: it ends early, or a \\u escape lacks its other half")
    if named := _FIELD.search(str(error)):
        return _explain_field(
            named["field"], named["place"] or "", is_missing=named["missing"] is not None, of=expected
        )
    found = _PLACE.match(str(error))
    if found is None:
        return invalid(f"the body is not what was expected: {error}")
    remedy = f": write a time as {_TIME}" if "datetime" in found["rule"] else ""
    return invalid(found["rule"] + remedy, found["place"].removeprefix("$.").removeprefix("$") or None)


def _explain_field(name: str, place: str, *, is_missing: bool, of: object) -> HTTPError:
    """Make the error of a field that is missing, or unknown."""
    where = place.removeprefix("$").removeprefix(".")
    field = f"{where}.{name}" if where else name
    if is_missing:
        example = f': give it, such as "{name}": {_EXAMPLES[name]}' if name in _EXAMPLES else ""
        return invalid(f"the field `{name}` is missing{example}", field)
    return invalid(f"there is no field `{name}`{suggest(name[:_MAX_NAME], _list_fields(of))}", field)


def _list_fields(expected: object) -> set[str]:
    """Return the names of the fields of a type, and of all types inside it."""
    found: set[str] = set()
    waiting, seen = [expected], set()
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, Struct) and kind not in seen:
            seen.add(kind)
            found.update(kind.__struct_encode_fields__)
            waiting += get_type_hints(kind).values()
        waiting += get_args(kind)
    return found


def encode_error(error: HTTPError) -> bytes:
    """Return the body of an error."""
    return msgspec.json.encode(ErrorBody(make_problem(error)))


def make_problem(error: HTTPError) -> Problem:
    """Return an error as bodies have it."""
    message = error.message if len(error.message) <= _MAX_MESSAGE else f"{error.message[:_MAX_MESSAGE]}..."
    return Problem(CODES[error.status], message, error.field or UNSET)
