"""Reads the usual decision request quickly: {"actions": [[…], …], "ids": […]?, "request_id"?}.

simdjson makes an array of the numbers without a Python object for each. Whatever is not exactly of this form is left to
msgspec's decoder, which also words the errors.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import simdjson

Parts = tuple[npt.NDArray[np.float64], list[str] | None, str | None]

_LONG_ROW = 256
"""Bytes of a row that are searched in less time than they are counted."""
_KEYS = {"actions", "ids", "request_id"}
_UNEXPECTED = (ValueError, TypeError, KeyError, AttributeError, RuntimeError)


def _count_lists(parts: Parts) -> int:
    rows, ids, _ = parts
    return 1 + len(rows) + (ids is not None)


def _has_lists(body: bytes, count: int) -> bool:
    """Tell whether a body opens so many lists. Where rows are long, looking for them beats looking at every byte.

    NumPy would count in half of the time, but lets go of Python's lock for it, and waits to have it back.
    """
    if len(body) < count * _LONG_ROW:
        return body.count(b"[") == count
    place = -1
    for _ in range(count):
        place = body.find(b"[", place + 1)
        if place < 0:
            return False
    return body.find(b"[", place + 1) < 0


class FastJson:
    """A parser for one thread: it reuses its memory.

    Parameters
    ----------
    max_actions
        Actions in a request, at most.
    max_label
        Characters of an id, at most.
    """

    def __init__(self, *, max_actions: int, max_label: int) -> None:
        self._parser = simdjson.Parser()
        self._max_actions, self._max_label = max_actions, max_label

    def read(self, body: bytes, dim: int) -> Parts | None:
        """Return the rows, the ids and the request's id, or None where the body is not exactly of this form."""
        if body[:1] != b"{":  # simdjson would pass over a byte order mark
            return None
        try:
            parts = self._read(self._parser.parse(body), dim)
            return parts if parts is not None and _has_lists(body, _count_lists(parts)) else None
        except _UNEXPECTED:
            self._parser = simdjson.Parser()  # the error may still hold the old one
            return None

    def read_batch(self, body: bytes, dim: int) -> list[Parts] | None:
        """Return the parts of each request in a list; None where any is not exactly of this form."""
        found: list[Parts] = []
        try:
            requests: Any = self._parser.parse(body)
            for request in requests:
                parts = self._read(request, dim)
                if parts is None:
                    return None
                found.append(parts)
        except _UNEXPECTED:
            self._parser = simdjson.Parser()
            return None
        return found if _has_lists(body, 1 + sum(map(_count_lists, found))) else None

    def _read(self, request: Any, dim: int) -> Parts | None:
        """Read a request whose rows may still be rows of rows: these would become one row, and have more lists."""
        keys = list(request)
        rows = request["actions"]
        count, ids, request_id = len(rows), None, None
        if len(keys) > 1:
            ids = request["ids"].as_list() if "ids" in keys else None
            request_id = request["request_id"] if "request_id" in keys else None
            if (
                len(keys) != len(_KEYS.intersection(keys))  # other keys, or one twice
                or not all(map(self._is_label, ids or ()))
                or not (request_id is None or self._is_label(request_id))
            ):
                return None
        if not 0 < count <= self._max_actions:
            return None
        for row in rows:
            if len(row) != dim:
                return None
        return np.ndarray((count, dim), np.float64, rows.as_buffer(of_type="d")), ids, request_id

    def _is_label(self, text: object) -> bool:
        return isinstance(text, str) and 0 < len(text) <= self._max_label
