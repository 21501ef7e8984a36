"""One shape for everything that goes wrong: {"error": {"code", "message", "field"?}}."""

import re

import msgspec
from msgspec import UNSET, Struct, UnsetType

from latecomer.errors import InputError

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
"""A status and its code go together: a client may look at either."""

_PLACE = re.compile(r"^(?P<rule>.*) - at `(?P<place>[^`]*)`$", re.DOTALL)


class Problem(Struct, frozen=True):
    """What went wrong: a code for programs, a sentence for people, and the field where there is one."""

    code: str
    message: str
    field: str | UnsetType = UNSET


class ErrorBody(Struct, frozen=True):
    """The body of every answer that is not a success."""

    error: Problem


class HTTPError(Exception):
    """A request that is answered with an error. `key` is the id of the key that was shown, for the log alone."""

    def __init__(self, status: int, message: str, *, field: str | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.key = status, message, field, key


def invalid(message: str, field: str | None = None) -> HTTPError:
    """The request breaks a rule that another request would keep."""
    return HTTPError(400, message, field=field)


def malformed(error: Exception) -> HTTPError:
    """What a decoder said, in our words: the place it names becomes the field."""
    if isinstance(error, RecursionError):
        return invalid("the body must not be nested so deeply")
    if isinstance(error, UnicodeDecodeError):
        return invalid("the body must be UTF-8")
    if str(error) == "Input data was truncated":  # msgspec's word for both
        return invalid("the body must be whole JSON: it ends early, or a \\u escape lacks its other half")
    found = _PLACE.match(str(error))
    if found is None:
        return invalid(f"the body is not what was expected: {error}")
    return invalid(found["rule"], found["place"].removeprefix("$.").removeprefix("$") or None)


_LONGEST = 1000
_NAMED = re.compile(
    r"(actions|context|dim|features|ids|occurred_at|parameters|policy|request_id|value|window|decision_id)\b"
)
_ACTION = re.compile(r"action (\d+)\b")
_REPORT = re.compile(r"(value|occurred_at) of (?:conversion|report) (\d+)\b")


def field_of(message: str) -> str | None:
    """The field that a message of the engine's is about: it is the first thing that such a message names.

    >>> field_of("window must be at most 36500d; got '40000d'")
    'window'
    """
    action, named = _ACTION.match(message), _NAMED.match(message)
    if action is not None:
        return f"actions[{action[1]}]"
    return None if named is None else named[1]


def place_in_list(error: InputError) -> HTTPError:
    """A broken rule of one report among many, by its place."""
    found = _REPORT.match(str(error))
    return invalid(str(error), field_of(str(error)) if found is None else f"[{found[2]}].{found[1]}")


MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding a hostile body may raise."""


def encoded(refusal: HTTPError) -> bytes:
    """The refusal as a body."""
    message = refusal.message if len(refusal.message) <= _LONGEST else f"{refusal.message[:_LONGEST]}..."
    return msgspec.json.encode(ErrorBody(Problem(CODES[refusal.status], message, refusal.field or UNSET)))
