"""Reads the usual decision requests quickly: {"actions": [[…], …], "ids": […]?, "request_id": …?}, alone or in a list.

A kernel reads the rows, without a Python object for each number; what follows them is short, and msgspec's. Whatever is
not exactly of this form is left to msgspec's decoder as a whole, which also words the errors; and everything is, until
the kernel is machine code.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from latecomer.service.decision_batch import MAX_DECISIONS
from latecomer.service.http.bodies import Label
from latecomer.service.http.body_reader import has_too_many_lists
from latecomer.service.http.decimal_numbers import POWERS, SCALES
from latecomer.service.http.rows_kernel import read_list, read_one, read_short_list
from latecomer.tiers.tiered_kernel import TieredKernel, compile_mode, request

Parts = tuple[npt.NDArray[np.float64], list[str] | None, str | None]
"""The rows, the ids and the request's id."""

_HOT_BYTES = 1 << 20
"""Machine code is made once so many bytes were left to msgspec for want of it."""
_SHORT_LIST = 50_000
"""Bytes of a list up to which Python's lock is kept: its rows take 50 µs, and taking the lock back may take 5 ms."""


class _Rest(msgspec.Struct, forbid_unknown_fields=True):
    """The fields that may follow the rows of a usual request."""

    ids: list[Label] | msgspec.UnsetType = msgspec.UNSET
    request_id: Label | msgspec.UnsetType = msgspec.UNSET


_rest_decoder = msgspec.json.Decoder(_Rest)
_NOTHING = (None, None)


def _read_rest(text: bytes) -> tuple[list[str] | None, str | None] | None:
    """Return the ids and the request's id of what follows the rows and a comma; None where it is anything else."""
    try:
        rest = _rest_decoder.decode(b"{" + text)
    except (msgspec.DecodeError, ValueError):
        return None
    ids, request_id = rest.ids, rest.request_id
    if ids is msgspec.UNSET and request_id is msgspec.UNSET:
        return None
    return None if ids is msgspec.UNSET else ids, None if request_id is msgspec.UNSET else request_id


class FastJson:
    """A reader for one thread: it reuses its memory.

    Parameters
    ----------
    max_actions
        Actions in a request, at most.
    """

    def __init__(self, *, max_actions: int) -> None:
        self._max_actions, self._left = max_actions, 0
        self._rows = np.empty((0, 0))
        self._ends, self._places = np.empty(MAX_DECISIONS, np.int64), np.empty((MAX_DECISIONS, 2), np.int64)

    def read(self, body: bytes, dim: int) -> Parts | None:
        """Return the parts of a request, or None where the body is not exactly of this form."""
        code = self._find_code(read_one, body)
        if code is None:
            return None
        rows = self._make_room(body, dim, self._max_actions)
        count, place = code(np.frombuffer(body, np.uint8), rows, POWERS, SCALES)
        if not 0 < count <= self._max_actions:
            return None
        rest = _read_rest(body[place:]) if place else _NOTHING
        return None if rest is None else (rows[:count].copy(), *rest)

    def read_batch(self, body: bytes, dim: int) -> list[Parts] | None:
        """Return the parts of each request in a list; None where any is not exactly of this form."""
        code = self._find_code(read_list if len(body) > _SHORT_LIST else read_short_list, body)
        if code is None:
            return None
        rows = self._make_room(body, dim, MAX_DECISIONS * self._max_actions)
        count = code(np.frombuffer(body, np.uint8), rows, self._ends, self._places, POWERS, SCALES)
        if not count:
            return None
        ends, found, begin = self._ends[:count].tolist(), [], 0
        rows = rows[: ends[-1]].copy()
        for end, (place, after) in zip(ends, self._places[:count].tolist(), strict=True):
            rest = _read_rest(body[place:after]) if place < after else _NOTHING
            if rest is None or end - begin > self._max_actions:
                return None
            found.append((rows[begin:end], *rest))
            begin = end
        return found

    def _find_code(self, kernel: TieredKernel, body: bytes) -> Callable[..., Any] | None:
        """Return the machine code where there is some and a body to read; or ask for it, once that pays."""
        if not body or has_too_many_lists(body):
            return None
        if kernel.is_compiled:
            return kernel.call
        if compile_mode() == "now":
            return kernel.compile()
        self._left += len(body)
        if self._left > _HOT_BYTES:
            self._left = 0
            request([kernel])
        return None

    def _make_room(self, body: bytes, dim: int, most: int) -> npt.NDArray[np.float64]:
        """Return room for the rows that a body may have, `most` or fewer, a number taking two bytes or more."""
        count = min(len(body) // (2 * dim) + 1, most)
        if self._rows.shape[1] != dim or len(self._rows) < count:
            self._rows = np.empty((count, dim))
        return self._rows
