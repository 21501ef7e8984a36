"""The request that nearly all are, read in one go: {"actions": [[…], …], "ids": […]?, "request_id"?}.

simdjson makes an array of the numbers without a Python object for each. It takes only what is beyond doubt; the careful
decoder has the rest, and the errors.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import simdjson

Read = tuple[npt.NDArray[np.float64], list[str] | None, str | None]

_KEYS = {"actions", "ids", "request_id"}
_DOUBT = (ValueError, TypeError, KeyError, AttributeError, RuntimeError)


class FastJson:
    """For one thread: it works in room of its own.

    Parameters
    ----------
    most
        Actions in a request.
    longest
        Characters of an id.
    """

    def __init__(self, *, most: int, longest: int) -> None:
        self._parser = simdjson.Parser()
        self._most, self._longest = most, longest

    def read(self, body: bytes, dim: int) -> Read | None:
        """Rows, ids and the request's id; None where there is any doubt."""
        if body[:1] != b"{":  # simdjson would pass over a byte order mark
            return None
        try:
            return self._read(self._parser.parse(body), body, dim)
        except _DOUBT:
            self._parser = simdjson.Parser()  # the other may still be held by what went wrong
            return None

    def _read(self, asked: Any, body: bytes, dim: int) -> Read | None:
        keys = list(asked)
        rows = asked["actions"]
        ids = asked["ids"].as_list() if "ids" in keys else None
        request_id = asked["request_id"] if "request_id" in keys else None
        if (
            len(keys) != len(_KEYS.intersection(keys))  # others, or one twice
            or body.count(b"[") != 1 + len(rows) + (ids is not None)  # rows in rows, which would be one row
            or not 0 < len(rows) <= self._most
            or not all(map(self._is_label, ids or ()))
            or not (request_id is None or self._is_label(request_id))
        ):
            return None
        for row in rows:
            if len(row) != dim:
                return None
        return np.frombuffer(rows.as_buffer(of_type="d"), np.float64).reshape(-1, dim), ids, request_id

    def _is_label(self, text: object) -> bool:
        return isinstance(text, str) and 0 < len(text) <= self._longest
